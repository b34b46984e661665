import { z } from 'zod';
import { inSteps, webSearchField, wordsOf, workflowFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';
import { jsonOf, textsIn } from '../core/json.ts';
import { cutMiddle } from '../core/text.ts';

const role = `You are the colleague to whom the caller brings a line of thought it has worked out step by step. Make it better: extend what is strong, break what is weak, and add what it has not seen.

How to go about it:
- Take the caller's goal and its constraints as given; question the path, and say so when the goal itself hides the difficulty.
- Look for what the reasoning rests on without saying it: assumptions about load, data, order of events, people, cost, failure.
- Go deep where the outcome is decided, and pass over the rest. One argument carried to its end is worth more than ten hints.
- Where files were given, check every claim against them; a claim that the code contradicts is the first thing to report.
- Offer another way only where it is really better, and say what it would cost.
- Prefer the simple thing. Treat unrequested abstraction as a defect.

Answer in Markdown:
1. **Verdict**: does the reasoning hold, and what would you do? Two or three sentences.
2. **What holds**: the points you checked and agree with, with the evidence, in short.
3. **Gaps and errors**, most severe first; for each: what is wrong or missing, why it matters, what follows for the decision.
4. **Edge cases and risks** that decide whether it works in practice.
5. **Alternatives** worth a look, with their trade-offs; leave this out when there is none.
6. **Next steps**: what to do or to find out first, in order.
At most 900 words.`;

const { issues_found: _issues, ...stepByStep } = workflowFields;
const fields = {
  ...stepByStep,
  problem_context: z.string().optional(),
  focus_areas: z.array(z.string()).optional(),
  use_websearch: webSearchField,
};

const maxFindingLength = 600;

export const thinkdeep = defineTool({
  name: 'thinkdeep',
  title: 'Think deeper',
  description: 'Reason through a hard problem or decision in steps; an expert model challenges the result.',
  toolset: 'core',
  ...inSteps(fields),
  mode: {
    kind: 'workflow',
    words: wordsOf('thinkdeep', 'thinkdeep', {
      skipped: {
        status: 'deep_thinking_complete_ready_for_implementation',
        reason: 'skipped_due_to_certain_thinking_confidence',
      },
    }),
    certain: ({ confidence }) => confidence === 'certain',
    settings: ['problem_context', 'focus_areas'],
    brief: ({ problem_context, focus_areas }) => [
      problem_context && `Background of the problem: ${problem_context}`,
      focus_areas?.length ? `Look at these aspects above all: ${focus_areas.join(', ')}` : '',
    ],
    requiredActions: ({ stepNumber, confidence }) => (stepNumber === 1 ? first : (byConfidence[confidence] ?? done)),
    keys: ({ step, progress, work }) => ({
      thinking_status: {
        current_step: step.stepNumber,
        total_steps: progress.totalSteps,
        files_checked: progress.filesChecked.length,
        relevant_files: progress.relevantFiles.length,
        thinking_confidence: progress.confidence,
        analysis_focus: textsIn(progress.settings.focus_areas),
      },
      ...(!step.nextStepRequired && {
        thinking_complete: true,
        complete_thinking: {
          steps_completed: progress.lastStep,
          final_confidence: progress.confidence,
          relevant_context: progress.relevantContext,
          key_findings: work.length > 1 ? work.map(text => cutMiddle(text, maxFindingLength)) : [],
          issues_identified: progress.issuesFound.map(issue => jsonOf(issue)),
          files_analyzed: progress.relevantFiles,
        },
        completion_message: `The thinking is done after ${progress.lastStep} steps. Weigh the result before you build on it.`,
      }),
    }),
    expert: { role, json: false },
  },
});

const early = [
  'Gather evidence for and against each of your ideas',
  'Put the likeliest one to a test that it could fail',
  'Look at the problem from another side: the user, the operator, the maintainer',
];

const late = [
  'Refine the conclusion and check it against everything you know',
  'Go through edge cases and limits',
  'Write down the trade-offs you accept',
];

const first = [
  'List the aspects of the problem, and what you take for granted about each',
  'Read what bears on it: code, documents, measurements',
  'Choose how you will go about it, and what would change your mind',
];

const byConfidence: Record<string, string[]> = {
  exploring: early,
  low: early,
  medium: [
    'Deepen the two or three ways that promise most',
    'Check the assumptions they rest on',
    'Find out what would be hard about carrying each out',
  ],
  high: late,
  very_high: [
    'Bring the findings together into one argument',
    'Check every conclusion against the evidence once more',
    'Write down how to carry it out',
  ],
  almost_certain: [
    'Settle the conclusion, and name the doubts that are left',
    'Set next_step_required to false to have an expert challenge it',
  ],
};

const done = ['Nothing is left to find out: set next_step_required to false'];
