import { z } from 'zod';
import { inSteps, reviewActions, severity, wordsOf, workflowFields } from '../calls/fields.ts';
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
- tests: behavior that nothing checks, tests that cannot fail; operations: logs, settings, upgrades.

${severity.scale}

Answer in Markdown:
1. **Issues**, CRITICAL first, then HIGH, MEDIUM, LOW. Each in this form:
   \`[SEVERITY] file:line – what is wrong\`, then what happens because of it, then the fix, with a few lines of code where that is clearer.
2. **Where I differ from the caller**: its findings that you would drop or rate otherwise, and why.
3. **Quality in short**: one paragraph.
4. **The three fixes to make first.**
5. **What is good** and should stay.
At most 15 issues; group those that repeat. If there are no issues, say so and what you checked.

Only if you cannot give a single supported finding because the code is too much, answer instead with this JSON object alone: {"status": "focused_review_required", "reason": "why it is too much", "suggestion": "which part to send first, such as one module or one concern"}`;

const { confidence: _confidence, use_assistant_model: _expert, ...stepByStep } = workflowFields;
const fields = {
  ...stepByStep,
  review_validation_type: z.enum(['external', 'internal']).optional(),
  review_type: z.enum(['full', 'security', 'performance', 'quick']).optional(),
  focus_on: z.string().optional(),
  standards: z.string().optional(),
  severity_filter: severity.filter,
};

export const codereview = defineTool({
  name: 'codereview',
  title: 'Review code',
  description: 'Review code in steps for bugs, security and performance; an expert model adds a second pass.',
  toolset: 'code',
  ...inSteps(fields),
  mode: {
    kind: 'workflow',
    words: wordsOf('codereview', 'code_review', {
      bySeverity: 'issues_by_severity',
      skipped: {
        status: 'code_review_complete_ready_for_implementation',
        reason: 'skipped_due_to_internal_analysis_type',
        because: 'The review is internal, as you asked',
        level: 'certain',
      },
    }),
    neededAtFirst: ['relevant_files'],
    settings: ['review_validation_type', 'review_type', 'focus_on', 'standards', 'severity_filter'],
    certain: (_step, _args, { review_validation_type }) => review_validation_type === 'internal',
    counters: (_step, { settings }) => ({ review_validation_type: settings.review_validation_type ?? 'external' }),
    brief: ({ review_type, focus_on, standards, severity_filter }) => [
      `Kind of review: ${review_type ?? 'full'}`,
      focus_on && `Focus on: ${focus_on}`,
      standards && `Standards that hold: ${standards}`,
      severity.lowest(severity_filter?.toUpperCase(), 'issues'),
    ],
    requiredActions: reviewActions({
      first: [
        'Read the files to review in full, and what they call',
        'Understand what the code is for, how it is built and where its boundaries are',
        'Follow the main paths and their error paths',
        'Note bugs, security and performance problems and what makes it hard to read, each with file and line',
      ],
      // A short pass is enough.
      again: [
        'Go through the code once more for critical problems and for patterns of them',
        'Sum up what you found for the expert, then set next_step_required to false',
      ],
      last: [
        'Check that every issue has a severity, file and line, and a fix that can be carried out',
        'Check whether something critical was missed, and whether kind and focus of the review were kept to',
        'Note what is good, then set next_step_required to false',
      ],
    }),
    expert: {
      role,
      json: false,
      after: 'Confirm CRITICAL and HIGH issues in the code, fix them, then report what was fixed and what was not.',
    },
  },
});
