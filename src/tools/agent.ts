import { z } from 'zod';
import { continuationId, hiddenFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

export const agent = defineTool({
  name: 'agent',
  title: 'Agent',
  description:
    'A model works on a task with tools of its own: reads, searches, patches, runs tests, as far as the user approves.',
  toolset: 'agent',
  effects: { writes: true, destroys: true, network: true, idempotent: false },
  fields: {
    task: z.string().optional(),
    files: z.array(z.string()).optional(),
    model: z.string().optional(),
    run_id: z.string().describe('A run that waits for approval').optional(),
  },
  accepts: { ...hiddenFields, continuation_id: continuationId, max_rounds: z.int().min(1).max(10).optional() },
  mode: { kind: 'agent' },
});
