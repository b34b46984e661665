import { z } from 'zod';
import { defineAction } from '../calls/tool.ts';

export const importThread = defineAction({
  name: 'import_thread',
  title: 'Import thread',
  description: 'Import a thread exported as JSONL.',
  toolset: 'ops',
  effects: { writes: true, destroys: false, network: false, idempotent: false },
  fields: { file_path: z.string(), as_new: z.boolean().optional() },
  renamed: { file: 'file_path', path: 'file_path' },
  async run({ file_path: filePath, as_new: asNew = false }, { transfer }) {
    return { status: 'success', ...(await transfer.import({ filePath, asNew })) };
  },
});
