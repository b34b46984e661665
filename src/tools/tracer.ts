import { z } from 'zod';
import { inSteps, stepFields, wordsOf, workflowFields } from '../calls/fields.ts';
import { defineTool, type Evidence, type TracedProject } from '../calls/tool.ts';
import { inputError } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import { counted } from '../core/text.ts';

const fields = {
  ...stepFields,
  findings: workflowFields.findings,
  trace_mode: z.enum(['precision', 'dependencies', 'ask']).describe('precision: call flow; ask: let the user choose'),
  target_description: z.string().min(1).describe('Function or class to trace'),
  relevant_files: z.array(z.string()).optional(),
  continuation_id: z.string().optional(),
};

export const tracer = defineTool({
  name: 'tracer',
  title: 'Trace code',
  description: 'Trace call flow or dependencies in steps, along a call graph (TS/JS, Python, Go).',
  toolset: 'code',
  ...inSteps(fields),
  effects: { writes: false, destroys: false, network: false, idempotent: false },
  mode: {
    kind: 'workflow',
    words: wordsOf('tracer', 'tracer', { pause: 'pause_for_tracing' }),
    asks: 'Trace the target.',
    neededAtFirst: ['trace_mode', 'target_description'],
    settings: ['trace_mode', 'target_description', 'relevant_files', 'relevant_context'],
    brief: ({ trace_mode, target_description }) => [`Trace (${trace_mode}): ${target_description}`],
    counters: (_step, { lastStep }) => ({ step_history_length: lastStep }),
    requiredActions({ stepNumber, totalSteps }, { trace_mode: mode }) {
      if (mode === 'ask') return modeActions;
      if (stepNumber === 1)
        return [
          'Find the target in the source; "trace_graph" says where it is, if the description names it',
          'Read it in full, with its signature, and each function that it calls or that calls it',
          'Check the graph against the source: settle every "ambiguous" and "unresolved" edge, or say that it stays open',
          'Look for what syntax does not show: registries, reflection, events, routes, generated code, configuration',
        ];
      if (stepNumber >= totalSteps)
        return [
          'Check errors, early returns, callbacks and concurrent paths',
          'List side effects: files, network, database, shared state',
          'Set next_step_required to false',
        ];
      const layers =
        mode === 'precision'
          ? [
              'Follow the calls one layer deeper; record the condition under which each is made',
              'Find where the flow starts: entry points, handlers, tests',
            ]
          : [
              'List all users of the target, and what each of them needs of it',
              'List the types that it extends or implements, and those that extend it',
            ];
      return [
        layers[stepNumber % 2] ?? '',
        `Record file:line of each, ${stepNumber - 1} ${stepNumber === 2 ? 'layer' : 'layers'} away from the target`,
      ];
    },
    async evidence({ trace_mode, target_description, relevant_files: named = [], ...others }, { trace, root, signal }) {
      if (trace_mode === undefined || trace_mode === 'ask') return { document: {} };
      const hints = z.array(z.string()).safeParse(Reflect.get(others, 'relevant_context')).data ?? [];
      const target = target_description ?? '';
      const found = await trace({ mode: trace_mode, target, hints, files: named, root, signal });
      refuseUnreadable(named, found);
      return evidenceOf(found);
    },
    keys: ({ step, args }) => ({ step_content: step.step, ...(args.trace_mode === 'ask' && modeSelection) }),
    metadata: ({ args: { trace_mode, target_description }, progress: { lastStep } }) => {
      return { trace_mode, target_description, step_history_length: lastStep };
    },
    unfinished: ({ args }) =>
      args.trace_mode === 'ask' ? { tracer_required: true, required_actions: modeActions } : undefined,
    finish({ args, evidence, work, progress }) {
      const { trace_mode: mode, target_description: target } = args;
      return {
        turn: withoutRepetition(work, evidence?.turn?.[0]),
        document: {
          status: 'tracing_complete',
          tracing_complete: true,
          trace_summary: `The ${mode} trace of "${target}" is complete after ${counted(progress.lastStep, 'step')}.`,
          output: {
            instructions:
              'Present the trace to the user: the graph, completed and corrected by what you found in the source.',
            format: `${mode}_trace_analysis`,
            rendering_instructions: mode === 'precision' ? precisionForm : dependenciesForm,
            presentation_guidelines: {
              completed_trace: 'Every node with its file and line. Only names and lines that are in the source.',
              step_content: 'Say where the source settled what the graph left ambiguous, and what stays open.',
              continuation: 'The thread has the graph and your findings: any tool can be given its continuation_id.',
            },
          },
          next_steps: 'Present the trace in the form of "output", then say in two or three sentences what it shows.',
        },
      };
    },
  },
});

/** A trace does not end, nor does it begin, before its mode is chosen. */
const modeSelection: JsonObject = {
  status: 'mode_selection_required',
  next_step_required: true,
  mode_selection_required: true,
  next_steps:
    'Ask the user which trace is wanted, then call tracer again with the next step_number, the continuation_id and trace_mode "precision" or "dependencies".',
};

const modeActions = [
  'Offer the user "precision": the calls from and to the target, in the order in which they run',
  'Offer the user "dependencies": what uses the target, what it uses, and how its types are related',
];

/** Files that were named and can't be read are an error; a language without grammar is not. */
function refuseUnreadable(named: readonly string[], { files, skipped, otherLanguages }: TracedProject): void {
  if (named.length === 0 || files > 0 || otherLanguages.length > 0 || skipped.length === 0) return;
  throw inputError(`None of the named files can be read. ${skipped.slice(0, 5).map(skipText).join(' ')}`, {
    class: 'files',
    next: 'Name files or directories inside the project in relevant_files, or none at all to trace in the whole project.',
    validationErrors: skipped.slice(0, 20).map(({ code, path }) => {
      return { field: 'relevant_files', error: `${code}: ${path}` };
    }),
  });
}

const skipText = ({ path, reason }: TracedProject['skipped'][number]): string => `${path}: ${reason}`;

function evidenceOf(found: TracedProject): Evidence {
  const notes = notesOf(found);
  const { traced, files } = found;
  if (!traced) return { document: { trace_notes: notes }, turn: notes };
  const drawing = traced.targets > 0 ? traced.drawing : '';
  return {
    document: {
      trace_graph: { files_read: files, ...traced.graph },
      ...(drawing && { trace_text: drawing }),
      trace_notes: notes,
    },
    turn: [...(drawing ? [`Call graph, read from the source by its syntax:\n${drawing}`] : []), ...notes],
  };
}

const maxSkips = 5;

/** What the graph does not show, so that nobody takes it for all there is. */
function notesOf({ traced, files, skipped, otherLanguages, broken }: TracedProject): string[] {
  const languages = otherLanguages.join(', ');
  const more = skipped.length - maxSkips;
  const notes = [
    files === 0 && 'No graph: there is no TypeScript, JavaScript, Python or Go source here. Trace by reading.',
    languages && `Not in the graph: ${languages}, which has no parser here; trace that by reading.`,
    traced && traced.targets === 0 && unnamed(traced.graph),
    traced && traced.targets > 1 && 'The description names several symbols; all of them are traced.',
    broken.length > 0 && `Syntax errors, so parts may be missing: ${broken.slice(0, maxSkips).join(', ')}`,
    ...skipped.slice(0, maxSkips).map(each => `Not read: ${skipText(each)}`),
    more > 0 && `Not read: ${more} more.`,
    files > 0 &&
      'By syntax alone: "ambiguous" edges may or may not happen, "unresolved" ones lead out of what was read.',
  ];
  return notes.flatMap(note => note || []);
}

function unnamed({ similar_names: similar }: JsonObject): string {
  const names = Array.isArray(similar) ? ` Similar names: ${similar.join(', ')}.` : '';
  return `The description names no symbol of the files read, so nothing was traced.${names} Put its exact name into target_description.`;
}

/** The graph stands in the thread once, unless it changed. */
function withoutRepetition(work: readonly string[], graph: string | undefined): string {
  const last = work.at(-1) ?? '';
  const stands = graph !== undefined && work.slice(0, -1).some(each => each.includes(graph));
  return stands ? last.replace(graph, () => 'Call graph: as given in an earlier step.') : last;
}

const precisionForm = [
  'Call flow as indented text, two spaces a level: ↓ what is called next, → one of several ways, ↻ recursion',
  'Class.method with file:line on each line; "? if …" for conditions; mark what is ambiguous',
  'Then tables: branches (where, condition, ways), side effects by kind, usage points, entry points',
].join('. ');

const dependenciesForm = [
  'Incoming ← target → outgoing as a text diagram, Class.method with file:line at each end',
  'Then the type relations (extends, implements, uses)',
  'Then a table: kind, from or to, method, file, line',
].join('. ');
