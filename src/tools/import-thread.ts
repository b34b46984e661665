import { z } from 'zod';
import { defineTool } from '../calls/tool.ts';

export const importThread = defineTool({
  name: 'import_thread',
  title: 'Import thread',
  description: 'Import a thread exported as JSONL.',
  toolset: 'ops',
  effects: { writes: true, destroys: false, network: false, idempotent: false },
  fields: { file_path: z.string(), as_new: z.boolean().optional() },
  renamed: { file: 'file_path', path: 'file_path' },
  mode: {
    kind: 'action',
    async run({ file_path: filePath, as_new: asNew = false }, { transfer }) {
      return { status: 'success', ...(await transfer.import({ filePath, asNew })) };
    },
  },
});
