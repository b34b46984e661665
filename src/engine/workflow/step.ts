import { z } from 'zod';
import { quietWorkflowFields, workflowFields } from '../../calls/fields.ts';
import type { Step } from '../../calls/tool.ts';

const fields = z.object({
  ...workflowFields,
  ...quietWorkflowFields,
  findings: workflowFields.findings.optional(),
  // Each tool has checked it against its own words.
  confidence: z.string().optional(),
  images: z.array(z.string()).optional(),
  is_step_revision: z.boolean().optional(),
  revises_step_number: z.int().optional(),
});

/** The common part of a workflow tool's validated arguments. */
export function stepOf(args: Record<string, unknown>, unsure = 'low'): Step & { useExpert?: boolean } {
  const given = fields.parse(args);
  return {
    step: given.step,
    stepNumber: given.step_number,
    totalSteps: given.total_steps,
    nextStepRequired: given.next_step_required,
    findings: given.findings ?? '',
    filesChecked: given.files_checked ?? [],
    relevantFiles: given.relevant_files ?? [],
    relevantContext: given.relevant_context ?? [],
    issuesFound: given.issues_found ?? [],
    images: given.images ?? [],
    confidence: given.confidence ?? unsure,
    hypothesis: given.hypothesis,
    revises: revised(given),
    useExpert: given.use_assistant_model,
  };
}

/** Hosts that fill in every field send a number beside `is_step_revision: false`: that revises nothing. */
function revised(given: z.output<typeof fields>): number | undefined {
  if (given.is_step_revision === false) return given.revises_step;
  return given.revises_step ?? given.revises_step_number ?? (given.is_step_revision ? given.step_number : undefined);
}
