import { z } from 'zod';
import { defineAction } from '../calls/tool.ts';

export const exportThread = defineAction({
  name: 'export_thread',
  title: 'Export thread',
  description: 'Export a thread as JSONL, Markdown or HTML.',
  toolset: 'ops',
  effects: { writes: true, destroys: false, network: false, idempotent: false },
  fields: {
    continuation_id: z.string().min(1),
    format: z.enum(['jsonl', 'md', 'html']).optional(),
    output_path: z.string().optional(),
  },
  writesBy: ['output_path'],
  renamed: { file: 'output_path', path: 'output_path' },
  async run({ continuation_id: continuationId, format = 'jsonl', output_path: outputPath }, { transfer }) {
    return { status: 'success', ...(await transfer.export({ continuationId, format, outputPath })) };
  },
});
