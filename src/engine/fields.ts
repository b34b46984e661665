import { z } from 'zod';

const list = (text: string) => z.array(z.string()).describe(text).optional();

/** Fields of every tool that asks a model. */
export const modelField = z
  .string()
  .describe('Model name, alias or provider:model[:effort]; listmodels shows them')
  .optional();
export const continuationId = z
  .string()
  .describe('Thread to go on with: an id from continuation_offer, or "last"')
  .optional();
export const filePaths = list('Files or directories; file.ts:10-80 names lines');

/** Fields of every tool that works in steps. */
export const workflowFields = {
  step: z.string().min(1).describe('What you do or found in this step; in step 1 the task'),
  step_number: z.int().min(1),
  total_steps: z.int().min(1).describe('Your estimate'),
  next_step_required: z.boolean().describe('false in the last step'),
  findings: z.string().describe('What you learned so far, with evidence'),
  files_checked: list('All files you looked at'),
  relevant_files: list('Files that matter, or directories; the expert gets them'),
  relevant_context: list('Functions and methods that matter'),
  issues_found: z.array(z.record(z.string(), z.unknown())).describe('[{severity, description}]').optional(),
  confidence: z.enum(['exploring', 'low', 'medium', 'high', 'very_high', 'almost_certain', 'certain']).optional(),
  hypothesis: z.string().optional(),
  use_assistant_model: z.boolean().describe('false: no expert').optional(),
  continuation_id: continuationId,
  model: modelField,
};

/** Accepted by every tool that asks a model, advertised by none: hosts know them, models need not. */
export const hiddenFields = {
  temperature: z.number().min(0).max(1).optional(),
  thinking_mode: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']).optional(),
  /** What the model sees of the thread: all of it, the files alone, or nothing. */
  context: z.enum(['thread', 'files', 'none']).optional(),
};
