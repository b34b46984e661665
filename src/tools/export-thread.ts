import { z } from 'zod';
import { defineTool } from '../engine/define.ts';

export const exportThread = defineTool({
  name: 'export_thread',
  title: 'Export a thread',
  description: 'Write a thread to a file: jsonl to import elsewhere, md or html to read.',
  toolset: 'ops',
  tier: 'user',
  effects: { writes: true, destroys: false, network: false, idempotent: false },
  fields: {
    continuation_id: z.string(),
    format: z.enum(['jsonl', 'md', 'html']).optional(),
    output_path: z.string().describe('Absent: in the reply').optional(),
  },
  writesBy: ['output_path'],
  renamed: { file: 'output_path', path: 'output_path' },
  shape: {
    kind: 'action',
    async run({ continuation_id: continuationId, format = 'jsonl', output_path: outputPath }, { transfer }) {
      return { status: 'success', ...(await transfer.export({ continuationId, format, outputPath })) };
    },
  },
});
