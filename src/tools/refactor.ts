import { z } from 'zod';
import { inSteps, severity, wordsOf, workflowFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

const role = `You turn what the caller found step by step into a refactoring plan that can be carried out by hand, change by change. Judge the code in the files you were given; the findings are a lead, not a proof. Behaviour stays as it is: what changes it is a bug report, not a refactoring.

Kinds of refactoring:
- codesmells: long or tangled functions, duplication, needless state, misleading names, deep nesting, magic values, dead code.
- decompose: parts that do too much, taken apart along their responsibilities.
- modernize: older forms of the language or its library, replaced by the current ones that this project's version has.
- organization: what belongs together, apart; what does not, together; names and places of files and modules.

Size comes first, whatever kind was asked for. Lines without comments and blank ones:
- beyond 15,000 in a file, 3,000 in a class or 500 in a function: severity critical, and only decomposition is proposed until it is done;
- beyond 5,000 in a file, 1,000 in a class or 150 in a function: weigh it. High when it hinders work now, medium when it will, low when it has good reasons.
- Take files apart before classes, and classes before functions.
- Size can be justified: one algorithm that is clearest in one piece, generated code, tables, legacy code that nobody touches, parts that share private state. Say so instead of cutting.

Rules:
- Fit language, version, style and structure of the project; follow the examples of style where they are named below. No new dependencies.
- Extract along a line that exists in the code. Nothing may lose access to what it needs: say how private state and visibility are kept.
- Every opportunity names file and lines and quotes the first and last line of the place as they are there, so that it can be found after other edits.
- Where code is replaced, give it as it is and as it shall be, complete enough to paste. No placeholder.
- Five to ten changes that matter, each small enough to be made and tested alone. Nothing cosmetic next to something critical.
- Invent nothing. What you could not see is no opportunity.

${severity.scale} Here the bug is the one that the structure invites, and what makes nearly every change risky or slow is high.
At most 40 lines in a snippet, with valid JSON escapes.

Answer with one JSON object and nothing else:
{"status": "refactor_analysis_complete",
 "refactor_opportunities": [{"id": "refactor-001", "type": "decompose|codesmells|modernize|organization", "severity": "critical|high|medium|low", "file": "…", "start_line": 1, "end_line": 2, "context_start_text": "first line, as it is", "context_end_text": "last line, as it is", "issue": "…", "suggestion": "…", "rationale": "…", "code_to_replace": "…", "replacement_code_snippet": "…", "new_code_snippets": [{"description": "…", "location": "same_class|same_file|new_file|…", "code": "…"}]}],
 "priority_sequence": ["refactor-001"],
 "next_actions": [{"action_type": "EXTRACT_METHOD|SPLIT_CLASS|MODERNIZE_SYNTAX|REORGANIZE_CODE|DECOMPOSE_FILE", "target_file": "…", "source_lines": "10-80", "description": "…"}],
 "more_refactor_required": false,
 "continuation_message": "what is left for the next round"}
Leave out a key that you have nothing for. An empty list of opportunities says that you looked and the code is good as it is. Set more_refactor_required where you stopped at ten.
Only if you cannot give a single supported opportunity because the code is too much, answer instead with this JSON object alone: {"status": "focused_review_required", "reason": "why it is too much", "suggestion": "which part to send first"}`;

const kinds = ['codesmells', 'decompose', 'modernize', 'organization'] as const;
const fields = {
  ...workflowFields,
  issues_found: workflowFields.issues_found.describe('[{type, severity, description}]'),
  confidence: z.enum(['exploring', 'incomplete', 'partial', 'complete']).optional(),
  refactor_type: z.enum(kinds).optional(),
  focus_areas: z.array(z.string()).optional(),
  style_guide_examples: z.array(z.string()).describe('Files whose style to match').optional(),
};

export const refactor = defineTool({
  name: 'refactor',
  title: 'Refactor',
  description: 'Find refactorings in steps: smells, decomposition, modernization; an expert writes plan and code.',
  toolset: 'code',
  ...inSteps(fields),
  mode: {
    kind: 'workflow',
    words: wordsOf('refactor', 'refactoring', {
      pause: 'pause_for_refactoring_analysis',
      skipped: {
        status: 'refactoring_analysis_complete_ready_for_implementation',
        reason: 'skipped_due_to_complete_refactoring_confidence',
      },
    }),
    unsure: 'incomplete',
    levels: ['exploring', 'incomplete', 'partial', 'ordered', 'complete'],
    neededAtFirst: ['relevant_files'],
    settings: ['refactor_type', 'focus_areas', 'style_guide_examples'],
    certain: ({ confidence }) => confidence === 'complete',
    files: ({ style_guide_examples }) => style_guide_examples ?? [],
    counters(_step, { issuesFound, confidence }) {
      const types = Map.groupBy(issuesFound, ({ type }) => String(type ?? 'untyped').toLowerCase());
      const counts = Object.fromEntries([...types].map(([type, { length }]) => [type, length]));
      return { opportunities_by_type: counts, refactor_confidence: confidence };
    },
    brief: ({ refactor_type, focus_areas, style_guide_examples }) => [
      `Kind of refactoring: ${refactor_type ?? 'codesmells'}`,
      focus_areas?.length ? `Look at these aspects above all: ${focus_areas.join(', ')}` : '',
      style_guide_examples?.length
        ? `Examples of the style to follow, not to be refactored: ${style_guide_examples.join(', ')}`
        : '',
    ],
    requiredActions: ({ stepNumber, confidence }) => (stepNumber === 1 ? first : (byConfidence[confidence] ?? done)),
    expert: {
      role,
      json: true,
      after:
        'Apply the changes in priority_sequence; run the tests after each. If more_refactor_required is true, send one more step then.',
    },
  },
});

const first = [
  'Read the files to refactor in full, and learn how they hang together and who uses them',
  'Count lines of files, classes and functions: the largest are looked at first',
  'Look for code smells: duplication, long functions, deep nesting, tangled state, misleading names',
  'Look for parts that should be taken apart, and for older forms of the language',
  'Look at the order of things: files, modules, what belongs together',
  'Note each opportunity in issues_found with type, severity, file and lines',
];

const byConfidence: Record<string, string[]> = {
  exploring: [
    'Look at each place closely: record what exactly is wrong, and what it costs',
    'Look at the parts that you have not read yet',
  ],
  incomplete: [
    'Find all users of what would change, and the tests that hold its behavior',
    'Sketch the better form, and check that visibility and shared state allow it',
  ],
  partial: [
    'Check every opportunity against the code once more, and drop what is only a matter of taste',
    'Look for what is still missing: files not read, kinds not looked for',
  ],
  ordered: ['Order the opportunities: what blocks, what pays most, what depends on what'],
};

const done = [
  'Check that every opportunity has type, severity, file and lines, and a change that can be carried out',
  'Set next_step_required to false',
];
