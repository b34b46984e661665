import { z } from 'zod';
import { inSteps, webSearchField, wordsOf, workflowFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

const role = `You give the holistic second look at a code base that the caller has analysed step by step. You judge its structure and where it is heading; single bugs only where they show a pattern.

Judge by the files you were given: architecture and boundaries, fitness for the stated goal, scalability, maintainability, security posture, operations, needless complexity.

Answer in Markdown:
1. **Overview**: two or three sentences, the verdict first.
2. **Findings**, the weightiest first; for each: the insight, its evidence (file:line), what it leads to, what to do, effort against benefit.
3. **Quick wins**: small changes that pay at once.
4. **Where you and the caller differ**: findings you would drop, weigh otherwise, or that were missed.
At most 900 words.

If what is needed is a line-by-line review of the whole code, answer instead with this JSON object alone, and only if you cannot give a single supported finding: {"status": "full_codereview_required", "important": "why this goes beyond an analysis", "reason": "what a review would find"}`;

const { confidence: _confidence, ...stepByStep } = workflowFields;
const fields = {
  ...stepByStep,
  analysis_type: z.enum(['architecture', 'performance', 'security', 'quality', 'general']).optional(),
  output_format: z.enum(['summary', 'detailed', 'actionable']).optional(),
  use_websearch: webSearchField,
};

/** Kind of analysis → what to look at. */
const concerns: readonly (readonly [string, string])[] = [
  ['architecture', 'Draw module boundaries and the direction of dependencies; name each cycle'],
  ['performance', 'Find the hot path; count the work of each request: queries, allocations, blocking calls'],
  ['security', 'List each entry point, what it trusts and where that is checked'],
  ['quality', 'Find duplicated rules, untested branches and dead code'],
];

export const analyze = defineTool({
  name: 'analyze',
  title: 'Analyze code',
  description: 'Assess a codebase in steps: architecture, performance, security, quality; an expert model checks.',
  toolset: 'code',
  ...inSteps(fields),
  mode: {
    kind: 'workflow',
    words: wordsOf('analyze', 'analysis', { bySeverity: 'insights_by_severity' }),
    neededAtFirst: ['relevant_files'],
    counters: (_step, progress) => ({ analysis_confidence: progress.confidence }),
    settings: ['analysis_type', 'output_format'],
    brief: ({ analysis_type, output_format }) => [
      `Kind of analysis: ${analysis_type ?? 'general'}; wanted form: ${output_format ?? 'detailed'}`,
    ],
    requiredActions({ stepNumber, totalSteps }, { analysis_type }, { settings }) {
      if (stepNumber === 1)
        return [
          'Read the files that matter and map stack, components and how they depend on each other',
          'Follow the main flow of data through them',
          'Note patterns, strengths, and what looks risky',
        ];
      if (stepNumber >= totalSteps)
        return [
          'Check that every insight has evidence with file and line',
          'Write down opportunities by weight, then set next_step_required to false',
        ];
      const kind = concerns.findIndex(([name]) => name === (analysis_type ?? settings.analysis_type));
      // The wanted kind comes first, the others after it, one a step.
      const [, concern] = concerns[(Math.max(kind, 0) + stepNumber - 2) % concerns.length] ?? [];
      return [
        ...(concern === undefined ? [] : [concern]),
        stepNumber % 2 === 0
          ? 'Record what you found with file:line, and what it leads to'
          : 'Verify the three weightiest findings so far against code that could refute them',
      ];
    },
    expert: { role, json: false },
  },
});
