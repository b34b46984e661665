import { z } from 'zod';
import { inSteps, workflowFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

const role = `You are the second reviewer of code that the caller has reviewed step by step. Confirm what is right in its review, correct what is wrong, and find what it missed. Judge the code in the files you were given; the findings are a lead, not a proof.

Scope:
- Review what was asked for, in the stack and style that is there. No migrations, no redesign, no new frameworks.
- Where a kind of review, a focus, standards or the lowest severity to report are named below, keep to them.
- Report what you can show. What depends on code you did not see is a question, not an issue.

Look for, as far as the kind of review allows:
- wrong results: logic, boundaries, states that cannot be left, errors swallowed or mistaken for success;
- security: input that is trusted, missing checks of rights, injection, secrets, unsafe defaults;
- concurrency and resources: races, leaks, locks, unbounded growth, missing time limits and cancellation;
- performance that will be felt: needless work in hot paths, queries in loops, quadratic growth;
- misuse of APIs and of the language; wrong or needless dependencies;
- structure: unclear boundaries, duplication, needless abstraction, names that mislead;
- tests: behaviour that nothing checks, tests that cannot fail; operations: logs, settings, upgrades.

Severity:
- CRITICAL: loss of data, a way in for an attacker, a crash or wrong result in ordinary use.
- HIGH: a bug in foreseeable circumstances, or a performance problem that users will meet.
- MEDIUM: makes the next change risky, or fails in rare circumstances.
- LOW: worth doing when one is there anyway.

Answer in Markdown:
1. **Issues**, CRITICAL first, then HIGH, MEDIUM, LOW. Each in this form:
   \`[SEVERITY] file:line – what is wrong\`, then what happens because of it, then the fix, with a few lines of code where that is clearer.
2. **Where I differ from the caller**: its findings that you would drop or rate otherwise, and why.
3. **Quality in short**: one paragraph.
4. **The three fixes to make first.**
5. **What is good** and should stay.
If there are no issues, say so and what you checked.

If the code is too much to review well in one go, answer instead with this JSON object alone: {"status": "focused_review_required", "reason": "why it is too much", "suggestion": "which part to send first, such as one module or one concern"}`;

const { confidence: _confidence, use_assistant_model: _expert, ...stepByStep } = workflowFields;
const fields = {
  ...stepByStep,
  review_validation_type: z.enum(['external', 'internal']).optional(),
  review_type: z.enum(['full', 'security', 'performance', 'quick']).optional(),
  focus_on: z.string().optional(),
  standards: z.string().optional(),
  severity_filter: z.enum(['critical', 'high', 'medium', 'low', 'all']).optional(),
};

export const codereview = defineTool({
  name: 'codereview',
  title: 'Review code',
  description: 'Review code for bugs, security, performance and quality in steps; an expert model makes a second pass.',
  toolset: 'code',
  ...inSteps(fields),
  mode: {
    kind: 'workflow',
    words: {
      pause: 'pause_for_code_review',
      required: 'codereview_required',
      status: 'code_review_status',
      complete: 'code_review_complete',
      summary: 'complete_code_review',
      bySeverity: 'issues_by_severity',
      skipped: {
        status: 'code_review_complete_ready_for_implementation',
        reason: 'skipped_due_to_internal_analysis_type',
        because: 'The review is internal, as you asked',
        level: 'certain',
      },
    },
    neededAtFirst: ['relevant_files'],
    settings: ['review_validation_type', 'review_type', 'focus_on', 'standards', 'severity_filter'],
    certain: (_step, _args, { review_validation_type }) => review_validation_type === 'internal',
    counters: (_step, { settings }) => ({ review_validation_type: settings.review_validation_type ?? 'external' }),
    brief: ({ review_type, focus_on, standards, severity_filter }) => [
      `Kind of review: ${review_type ?? 'full'}`,
      ...(focus_on ? [`Focus on: ${focus_on}`] : []),
      ...(standards ? [`Standards that hold: ${standards}`] : []),
      ...(severity_filter && severity_filter !== 'all' ? [lowest[severity_filter]] : []),
    ],
    requiredActions({ stepNumber }, { continuation_id }) {
      if (stepNumber === 1) return continuation_id === undefined ? first : firstOfMany;
      return stepNumber === 2 ? second : last;
    },
    expert: { role, json: false },
  },
});

const lowest = {
  critical: 'Report only issues of severity CRITICAL',
  high: 'Report only issues of severity HIGH and above',
  medium: 'Report only issues of severity MEDIUM and above',
  low: 'Report issues of severity LOW and above',
};

const first = [
  'Read the files to review, whole, and what they call',
  'Understand what the code is for, how it is built and where its boundaries are',
  'Follow the main paths and their error paths',
  'Note bugs, security and performance problems and what makes it hard to read, each with file and line',
];

/** The thread already knows the code: a short pass is enough. */
const firstOfMany = [
  'Go through the code once more for critical problems and for patterns of them',
  'Sum up what you found for the expert, then end with next_step_required false',
];

const second = [
  'Look closely at every suspicious place, and at how its callers use it',
  'Check security: input, rights, secrets; and performance where it counts',
  'Check structure: coupling, duplication, needless machinery',
  'Rate each issue: critical, high, medium or low',
];

const last = [
  'Check that every issue has a severity, file and line, and a fix that can be carried out',
  'Check whether something critical was missed, and whether kind and focus of the review were kept to',
  'Note what is good, then end with next_step_required false',
];
