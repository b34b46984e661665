import { z } from 'zod';
import { hiddenFields, quietWorkflowFields, stepFields, wordsOf, workflowFields } from '../calls/fields.ts';
import { defineTool, type WorkflowProgress } from '../calls/tool.ts';
import { type JsonObject, numberIn, textsIn } from '../core/json.ts';

const count = z.int().min(0).optional();
const wish = z.boolean().optional();

const fields = {
  ...stepFields,
  findings: workflowFields.findings.optional(),
  relevant_files: z.array(z.string()).describe('Step 1: files to document; later: files done').optional(),
  document_complexity: wish,
  document_flow: wish,
  update_existing: wish,
  comments_on_complex_logic: wish,
  num_files_documented: count,
  total_files_to_document: count,
  continuation_id: workflowFields.continuation_id,
};

type Arguments = z.output<z.ZodObject<typeof fields>>;

const { model, confidence: _confidence, files_checked, issues_found, use_assistant_model } = workflowFields;

export const docgen = defineTool({
  name: 'docgen',
  title: 'Document code',
  description: 'Document code file by file; tracks progress and cannot end until every file is done.',
  toolset: 'code',
  effects: { writes: false, destroys: false, network: false, idempotent: false },
  fields,
  accepts: { ...hiddenFields, ...quietWorkflowFields, model, files_checked, issues_found, use_assistant_model },
  renamed: { files: 'relevant_files', absolute_file_paths: 'relevant_files' },
  mode: {
    kind: 'workflow',
    words: wordsOf('documentation_analysis', 'documentation_analysis'),
    counted: kept => textsIn(kept.scope),
    settings: ['document_complexity', 'document_flow', 'update_existing', 'comments_on_complex_logic'],
    brief: settings => [`Wanted: ${wishesOf(settings).join('; ')}`],
    /**
     * The first step says what is to be documented, each later one what it has documented; the caller's own counts can only add,
     * and what is gone since then counts no more.
     */
    keep(kept, { stepNumber, revises }, args, { found, gone }) {
      const begins = (revises ?? stepNumber) === 1;
      const documented = textsIn(kept.documented);
      return {
        scope: begins && found.length > 0 ? [...found] : textsIn(kept.scope).filter(path => !gone.includes(path)),
        gone: numberIn(kept.gone) + gone.length,
        documented: begins ? documented : [...new Set([...documented, ...found])],
        claimedTotal: Math.max(numberIn(kept.claimedTotal), args.total_files_to_document ?? 0),
        claimedDone: Math.max(numberIn(kept.claimedDone), args.num_files_documented ?? 0),
      };
    },
    counters: (_step, progress) => {
      const { total: total_files_to_document, documented: num_files_documented } = tally(progress);
      const documentation_strategies = progress.relevantContext.length;
      return { documentation_strategies, num_files_documented, total_files_to_document };
    },
    requiredActions({ stepNumber }, _args, progress) {
      const { total, documented, left } = tally(progress);
      if (stepNumber === 1) {
        return [
          total === 0
            ? 'Name the files or directories to document: resend step 1 with them in relevant_files'
            : `Look over the ${total} files to document; do not change any yet`,
          'Learn how this project documents: style, language, tags, what is left out',
          'Settle the order: what the others build on comes first',
          ...rules(progress),
        ];
      }
      if (total > 0 && documented >= total) {
        return [
          'Check every documented file once more: each statement is true, and no line of code changed',
          'Set next_step_required to false',
        ];
      }
      return [
        `Document the next file, and only that: ${left[0] ?? 'the next one on your list'} (${documented} of ${total} are done)`,
        ...(stepNumber % 10 === 0 ? rules(progress) : ['Keep to the same rules as in step 1']),
        'Name the finished file in the next step’s relevant_files, and say in findings what you documented',
      ];
    },
    keys({ progress }) {
      const { left } = tally(progress);
      return left.length === 0 ? {} : { files_to_document: shown(left) };
    },
    unfinished({ progress }) {
      const { total, documented, left } = tally(progress);
      if (total > 0 && documented >= total) return undefined;
      const next = `call docgen again with step_number ${progress.lastStep + 1} and the continuation_id`;
      const why =
        total === 0
          ? `It is not known what to document. Name files or directories in relevant_files: start over with step_number 1.`
          : `${total - documented} of ${total} files are not documented yet${left.length > 0 ? `: ${shown(left).join(', ')}` : ''}. Document the next one, then ${next}, with the file in relevant_files.`;
      const status = 'documentation_analysis_required';
      return { status, pause_for_docgen: true, next_step_required: true, next_steps: why };
    },
    finish: ({ progress, work }) => ({
      document: {
        status: 'documentation_analysis_complete',
        next_steps: `All ${tally(progress).total} files are documented. Show the user which, and every bug that you came across and left alone; run the tests, for no line of code may have changed.`,
      },
      turn: work.at(-1) ?? '',
    }),
  },
});

/** `left`: counted files of which no step said that they are done; none where the caller's own count covers them. */
function tally({ kept }: WorkflowProgress) {
  const scope = textsIn(kept.scope);
  const documented = new Set(textsIn(kept.documented));
  const claimed = numberIn(kept.claimedDone);
  const total = Math.max(scope.length, numberIn(kept.claimedTotal) - numberIn(kept.gone));
  const named = scope.length > 0 ? scope.filter(path => documented.has(path)).length : documented.size;
  const done = Math.min(Math.max(named, claimed), Math.max(total, named));
  return { total, documented: done, left: done >= total ? [] : scope.filter(path => !documented.has(path)) };
}

/** What holds for every file; said again now and then, since callers forget over many files. */
const rules = ({ settings }: WorkflowProgress): string[] => [
  'Never change code, names or formatting: documentation and comments only',
  'Use the current form of documentation of the language: docstrings, JSDoc or TSDoc, ///, Javadoc, Go doc comments …',
  `Document every function, method and type, private ones too: ${wishesOf(settings).join('; ')}`,
  'Do not fix bugs; list them in findings',
];

function wishesOf(settings: Partial<Arguments> | JsonObject): string[] {
  const { document_complexity, document_flow, update_existing, comments_on_complex_logic } = settings;
  return [
    'purpose, parameters, result, errors',
    ...(document_complexity !== true ? [] : ['time and space complexity where there is a loop or recursion']),
    ...(document_flow !== true ? [] : ['who calls it and what it calls, where that is not plain']),
    update_existing === false
      ? 'existing documentation stays as it is'
      : 'existing documentation is corrected where it is wrong or poor',
    ...(comments_on_complex_logic === false ? [] : ['a comment inside where the logic is hard to follow']),
  ];
}

const maxShown = 30;

function shown(paths: readonly string[]): string[] {
  if (paths.length <= maxShown) return [...paths];
  return [...paths.slice(0, maxShown), `… and ${paths.length - maxShown} more`];
}
