import { z } from 'zod';
import { defineTool } from '../engine/define.ts';
import { hiddenFields, modelField } from '../engine/fields.ts';

export const agent = defineTool({
  name: 'agent',
  title: 'Let a model work on the project',
  description:
    'A model does a task with tools of its own: reads, searches, patches files and runs tests, within what the user approves.',
  toolset: 'agent',
  tier: 'user',
  effects: { writes: true, destroys: true, network: true, idempotent: false },
  fields: {
    task: z.string().optional(),
    files: z.array(z.string()).describe('To begin with').optional(),
    model: modelField,
    run_id: z.string().describe('Goes on with a run that waits for approval').optional(),
  },
  accepts: { ...hiddenFields, max_rounds: z.int().min(1).max(10).optional() },
  shape: { kind: 'agent' },
});
