import { z } from 'zod';
import type { Step } from '../define.ts';
import { workflowFields } from '../fields.ts';

const fields = z.object(workflowFields);

/** The common part of a workflow tool's validated arguments. */
export function stepOf(args: Record<string, unknown>): Step & { useExpert?: boolean } {
  const given = fields.parse(args);
  return {
    step: given.step,
    stepNumber: given.step_number,
    totalSteps: given.total_steps,
    nextStepRequired: given.next_step_required,
    findings: given.findings,
    filesChecked: given.files_checked ?? [],
    relevantFiles: given.relevant_files ?? [],
    relevantContext: given.relevant_context ?? [],
    issuesFound: given.issues_found ?? [],
    confidence: given.confidence ?? 'low',
    hypothesis: given.hypothesis,
    useExpert: given.use_assistant_model,
  };
}
