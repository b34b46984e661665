import type { ToolDefinition } from '../../calls/tool.ts';

/** Texts that callers without steps ask with; the first one given is the question. */
const questionNames = [
  'prompt',
  'question',
  'error_description',
  'original_request',
  'current_analysis',
  'problem_context',
  'context',
] as const;

/** Texts that say what is known already. */
const evidenceNames = ['error_context', 'runtime_info', 'previous_attempts'] as const;

const contexts = new Set(['thread', 'files', 'none']);

export interface NewerForm {
  input: Record<string, unknown>;
  warnings: string[];
}

/** Names beyond its fields that a tool understands. */
export function olderNames({ shape }: ToolDefinition): readonly string[] {
  return shape.kind === 'workflow' && shape.expert ? [...questionNames, ...evidenceNames] : [];
}

/**
 * A call in the words of callers that know no steps, as a step: a question without `step_number` is a whole workflow of one
 * step, whose expert is asked at once. In a call with `step_number` such words only fill what is missing.
 */
export function newerForm(
  tool: ToolDefinition,
  given: Record<string, unknown>,
  isField: (name: string) => boolean,
): NewerForm {
  if (olderNames(tool).length === 0) return { input: given, warnings: [] };
  const texts = olderTexts(given, isField);
  const rest = Object.fromEntries(Object.entries(given).filter(([name]) => !texts.has(name)));
  if (given.step_number !== undefined) return fillStep(rest, texts, given);
  const question = questionNames.find(name => texts.has(name)) ?? ownQuestion(given);
  return question === undefined
    ? { input: given, warnings: [] }
    : { input: oneStep(rest, texts, question), warnings: [] };
}

/** The older texts of a call that are no fields of the tool itself. */
function olderTexts(given: Record<string, unknown>, isField: (name: string) => boolean): Map<string, string> {
  const texts = new Map<string, string>();
  for (const name of [...questionNames, ...evidenceNames]) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined) continue;
    const older = name === 'context' ? isProse(value) : !isField(name);
    if (older) texts.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  }
  return texts;
}

function isProse(value: unknown): boolean {
  return typeof value === 'string' && !contexts.has(value.trim().toLowerCase());
}

/** Where a text of the same name is a field of the tool and nothing else was asked. */
function ownQuestion(given: Record<string, unknown>): string | undefined {
  if (given.step !== undefined) return undefined;
  return questionNames.find(name => name !== 'context' && typeof given[name] === 'string');
}

function oneStep(
  rest: Record<string, unknown>,
  texts: ReadonlyMap<string, string>,
  question: string,
): Record<string, unknown> {
  const { step, findings, [question]: own, ...others } = rest;
  const known = [findings, step].filter(text => typeof text === 'string');
  return {
    ...others,
    step: texts.get(question) ?? own,
    step_number: 1,
    total_steps: 1,
    next_step_required: false,
    findings: [...known, ...labelled(texts, name => name !== question)].join('\n\n'),
    use_assistant_model: others.use_assistant_model ?? true,
  };
}

function labelled(texts: ReadonlyMap<string, string>, wanted: (name: string) => boolean): string[] {
  return [...texts].flatMap(([name, text]) => (wanted(name) ? [`${name.replaceAll('_', ' ')}: ${text}`] : []));
}

function fillStep(
  rest: Record<string, unknown>,
  texts: ReadonlyMap<string, string>,
  given: Record<string, unknown>,
): NewerForm {
  const asked = [...texts.keys()].filter(name => questionNames.some(question => question === name));
  const step = given.step === undefined ? asked.find(name => name !== 'current_analysis') : undefined;
  const analysis = given.findings === undefined && texts.has('current_analysis') ? 'current_analysis' : undefined;
  const known = labelled(texts, name => evidenceNames.some(evidence => evidence === name));
  const findings = [given.findings ?? (analysis && texts.get(analysis)), ...known].filter(Boolean);
  const ignored = asked.filter(name => name !== step && name !== analysis);
  return {
    input: {
      ...rest,
      ...(step !== undefined && { step: texts.get(step) }),
      ...(findings.length > 0 && { findings: findings.join('\n\n') }),
    },
    warnings: ignored.map(name => `"${name}" is for calls without step_number; it was ignored.`),
  };
}
