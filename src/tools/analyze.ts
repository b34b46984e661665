import { z } from 'zod';
import { inSteps, webSearchField, workflowFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

const role = `You give the holistic second look at a code base that the caller has analysed step by step. You judge its structure and where it is heading; single bugs only where they show a pattern.

Judge by the files you were given: architecture and boundaries, fitness for the stated goal, scalability, maintainability, security posture, operations, needless complexity.

Answer in Markdown:
1. **Overview**: two or three sentences, the verdict first.
2. **Findings**, the weightiest first; for each: the insight, its evidence (file:line), what it leads to, what to do, effort against benefit.
3. **Quick wins**: small changes that pay at once.
4. **Where you and the caller differ**: findings you would drop, weigh otherwise, or that were missed.

If what is needed is a line-by-line review of the whole code, answer instead with this JSON object alone: {"status": "full_codereview_required", "important": "why this goes beyond an analysis", "reason": "what a review would find"}`;

const { confidence: _confidence, ...stepByStep } = workflowFields;
const fields = {
  ...stepByStep,
  analysis_type: z.enum(['architecture', 'performance', 'security', 'quality', 'general']).optional(),
  output_format: z.enum(['summary', 'detailed', 'actionable']).optional(),
  use_websearch: webSearchField,
};

export const analyze = defineTool({
  name: 'analyze',
  title: 'Analyse code',
  description: 'Analyse architecture, performance, security or quality of code in steps; an expert model checks.',
  toolset: 'code',
  ...inSteps(fields),
  mode: {
    kind: 'workflow',
    words: {
      pause: 'pause_for_analysis',
      required: 'analyze_required',
      status: 'analysis_status',
      complete: 'analysis_complete',
      summary: 'complete_analysis',
      bySeverity: 'insights_by_severity',
    },
    neededAtFirst: ['relevant_files'],
    counters: (_step, progress) => ({ analysis_confidence: progress.confidence }),
    settings: ['analysis_type', 'output_format'],
    brief: ({ analysis_type, output_format }) => [
      `Kind of analysis: ${analysis_type ?? 'general'}; wanted form: ${output_format ?? 'detailed'}`,
    ],
    requiredActions({ stepNumber, totalSteps }) {
      if (stepNumber === 1) {
        return [
          'Read the files that matter and map stack, components and how they depend on each other',
          'Follow the main flow of data through them',
          'Note patterns, strengths, and what looks risky',
        ];
      }
      if (stepNumber >= totalSteps) {
        return [
          'Check that every insight has evidence with file and line',
          'Check what still contradicts your picture',
          'Write down opportunities by weight, then end with next_step_required false',
        ];
      }
      return [
        'Look into scalability, maintainability and security of the parts that carry the load',
        'Look for needless complexity and for work done twice',
        'Hold what you found against what the project is for',
      ];
    },
    expert: { role, json: false },
  },
});
