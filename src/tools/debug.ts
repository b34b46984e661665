import { z } from 'zod';
import { inSteps, webSearchField, wordsOf, workflowFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

const role = `You find the root cause of a defect that the caller has investigated step by step. Judge by the code you were given and by the reported symptom alone; propose the smallest change that removes the cause, and say what it could break.

"There is no bug" is a legitimate result. A symptom may come from far away: follow the data.

Answer with one JSON object and nothing else, in one of these forms:
{"status": "analysis_complete", "summary": "…", "investigation_steps": ["…"], "hypotheses": [{"name": "…", "confidence": "High|Medium|Low", "root_cause": "…", "evidence": "file:line …", "correlation": "how it explains the symptom", "validation": "how to confirm it", "minimal_fix": "…", "regression_check": "…", "file_references": ["file:line"]}], "key_findings": ["…"], "reproduction_steps": ["…"], "immediate_actions": ["…"], "prevention_strategy": "…", "investigation_summary": "…"}
{"status": "no_bug_found", "summary": "…", "investigation_steps": ["…"], "areas_examined": ["…"], "confidence_level": "High|Medium|Low", "alternative_explanations": ["…"], "recommended_questions": ["…"], "next_steps": ["…"]}
Hypotheses come most likely first. Leave out a key that you have nothing for.`;

const { issues_found: _issues, ...stepByStep } = workflowFields;
const fields = { ...stepByStep, hypothesis: z.string().optional(), use_websearch: webSearchField };

export const debug = defineTool({
  name: 'debug',
  title: 'Debug',
  description: 'Find the root cause of a bug in steps, from hypothesis to evidence; an expert model checks it.',
  toolset: 'code',
  ...inSteps(fields),
  mode: {
    kind: 'workflow',
    words: wordsOf('investigation', 'investigation', {
      skipped: { status: 'certain_confidence_proceed_with_fix', reason: 'skipped_due_to_certain_confidence' },
    }),
    certain: ({ confidence }) => confidence === 'certain',
    counters: (_step, progress) => ({ hypotheses_formed: progress.hypotheses.length }),
    requiredActions: ({ stepNumber, confidence }) => (stepNumber === 1 ? first : (byConfidence[confidence] ?? done)),
    expert: {
      role,
      json: true,
      after: 'Apply the minimal fix of the first confirmed hypothesis, then run the reproduction.',
    },
  },
});

const first = [
  'Search the code for what the symptom touches; it may originate elsewhere, and there may be no bug',
  'Read it, and learn how the project is laid out there',
  'Write down what ought to happen instead',
];

const early = [
  'Read the files on the failing path',
  'Trace calls and data to where they first go wrong',
  'Check edge cases, configuration and dependencies',
];

const byConfidence: Record<string, string[]> = {
  exploring: early,
  low: early,
  medium: [
    'Name the exact lines; state the hypothesis as cause → effect',
    'Write down one observation that would disprove it',
  ],
  high: ['Run or trace that observation; record the result', 'Look for the same fault elsewhere'],
  very_high: [
    'Reproduce the symptom, trace the path again as if the smallest change were made',
    'Name what the change could break',
  ],
  almost_certain: [
    'Write down the whole chain from cause to symptom, with evidence',
    'Settle on the smallest change',
    'Set next_step_required to false to have an expert check it',
  ],
};

const done = [
  'Test the conclusion against the code once more',
  'Confirm or refute it, then set next_step_required to false',
];
