import { z } from 'zod';
import { continuationId, hiddenFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

export const agent = defineTool({
  name: 'agent',
  title: 'Agent',
  description: 'Have a model do a task in this project: it reads, searches, patches and runs tests, as approved.',
  toolset: 'agent',
  effects: { writes: true, destroys: true, network: true, idempotent: false },
  fields: {
    task: z.string().optional(),
    files: z.array(z.string()).optional(),
    model: z.string().optional(),
    run_id: z.string().describe('Run awaiting approval').optional(),
  },
  accepts: { ...hiddenFields, continuation_id: continuationId, max_rounds: z.int().min(1).max(10).optional() },
  mode: { kind: 'agent' },
});
