import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { type AppError, type FieldError, inputError, securityError } from '../core/errors.ts';
import { normalizeId } from '../core/ids.ts';
import { isRecord, parsedJson } from '../core/json.ts';
import type { Property, ToolSchema } from './argument-schema.ts';
import { continuationId, hiddenFields, modelField, stepFields } from './fields.ts';
import { type ToolDefinition, workflowOf } from './tool.ts';

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

/** Names beyond its fields that a tool understands. */
function olderNames(tool: ToolDefinition): readonly string[] {
  const { expert, asks } = workflowOf(tool) ?? {};
  return expert || asks !== undefined ? [...questionNames, ...evidenceNames] : [];
}

/**
 * A call in the words of callers that know no steps, as a step: a question without `step_number` is a whole workflow of one
 * step, whose expert, if it has one, is asked at once. In a call with `step_number` such words only fill what is missing.
 */
function upgradeArguments(
  tool: ToolDefinition,
  given: Record<string, unknown>,
  isField: (name: string) => boolean,
  warnings: string[],
): Record<string, unknown> {
  if (olderNames(tool).length === 0) return given;
  const texts = olderTexts(given, isField);
  const rest = Object.fromEntries(Object.entries(given).filter(([name]) => !texts.has(name)));
  if (given.step_number !== undefined) return fillStep(rest, texts, given, warnings);
  const isOwn = (name: string) => given.step === undefined && name !== 'context' && given[name] !== undefined;
  // Else a text of the same name that is a field of the tool, where nothing else was asked.
  const question = questionNames.find(name => texts.has(name)) ?? questionNames.find(isOwn);
  if (question !== undefined) return oneStep(rest, texts, question);
  const { asks, neededAtFirst = [] } = workflowOf(tool) ?? {};
  const isBare = Object.keys(stepFields).every(name => given[name] === undefined);
  return asks !== undefined && isBare && neededAtFirst.every(name => given[name] !== undefined)
    ? oneStep(rest, new Map([['prompt', asks], ...texts]), 'prompt')
    : given;
}

/** The older texts of a call that are no fields of the tool itself. */
function olderTexts(given: Record<string, unknown>, isField: (name: string) => boolean): Map<string, string> {
  const texts = new Map<string, string>();
  for (const name of [...questionNames, ...evidenceNames]) {
    const value = given[name];
    const older =
      name === 'context' ? typeof value === 'string' && !contexts.has(value.trim().toLowerCase()) : !isField(name);
    if (older && value !== undefined) texts.set(name, asText(value));
  }
  return texts;
}

function oneStep(rest: Record<string, unknown>, texts: ReadonlyMap<string, string>, question: string) {
  // Whoever asks a question wants it answered, however sure he is.
  const { step, findings, confidence, [question]: own, ...others } = rest;
  const sure = confidence === undefined ? undefined : `confidence: ${asText(confidence)}`;
  const known = [findings, step, sure].map(asText).filter(Boolean);
  return {
    ...others,
    step: texts.get(question) ?? own,
    step_number: 1,
    total_steps: 1,
    next_step_required: false,
    findings: [...known, ...labelled(texts, name => name !== question)].join('\n\n'),
  };
}

const labelled = (texts: ReadonlyMap<string, string>, wanted: (name: string) => boolean): string[] =>
  [...texts].flatMap(([name, text]) => (wanted(name) ? [`${name.replaceAll('_', ' ')}: ${text}`] : []));

function fillStep(
  rest: Record<string, unknown>,
  texts: ReadonlyMap<string, string>,
  given: Record<string, unknown>,
  warnings: string[],
) {
  const asked = [...texts.keys()].filter(name => questionNames.some(question => question === name));
  const step = given.step === undefined ? asked.find(name => name !== 'current_analysis') : undefined;
  const analysis = given.findings === undefined && texts.has('current_analysis') ? 'current_analysis' : undefined;
  const known = labelled(texts, name => evidenceNames.some(evidence => evidence === name));
  const findings = [given.findings ?? (analysis && texts.get(analysis)), ...known].map(asText).filter(Boolean);
  const ignored = asked.filter(name => name !== step && name !== analysis);
  warnings.push(...ignored.map(name => `"${name}" is for calls without step_number; it was ignored.`));
  return {
    ...rest,
    ...(step !== undefined && { step: texts.get(step) }),
    ...(findings.length > 0 && { findings: findings.join('\n\n') }),
  };
}

/**
 * A caller's arguments as the tool wants them. Forgiving where hosts add and models slip (nulls, empty strings, lists and
 * numbers as text, a lone string for a list, older names), strict where a slip would change the meaning (a misspelt name).
 */
export function parseArguments(tool: ToolDefinition, schema: ToolSchema, raw: Record<string, unknown>) {
  const isField = (name: string) => Object.hasOwn(schema.properties, name);
  const zeros = zerosForNothing(tool, raw);
  const given = Object.entries(raw)
    .map(
      ([name, value]) => [name, idFields.has(name) && typeof value === 'string' ? normalizeId(value) : value] as const,
    )
    .filter(([name, value]) => (!isNothing(value) && !zeros.has(name)) || takesEmpty(tool, name, value));
  const warnings: string[] = [];
  const newer = upgradeArguments(tool, Object.fromEntries(given), isField, warnings);
  const input: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(newer)) {
    const target = isField(name) ? name : renamedTo(tool, name);
    const property = isField(target) ? schema.properties[target] : undefined;
    if (!property) {
      const near = nearest(name, [...Object.keys(schema.properties), ...olderNames(tool)]);
      if (near !== undefined)
        throw inputError(`${tool.name} has no field "${name}". Did you mean "${near}"?`, {
          next: `Send the same call with "${near}" instead of "${name}".`,
          validationErrors: [{ field: name, error: 'unknown field', allowed: [near] }],
        });
      warnings.push(`Ignored unknown field "${name.slice(0, 60)}" of ${tool.name}.`);
    } else if (!(target in input) || target === name) {
      input[target] = coerce(value, property, target);
    }
  }
  const result = schema.parser.safeParse(input);
  if (!result.success && tool.writingFields && z.object(tool.writingFields).safeParse(input).success)
    throw readOnlyError(`This call of ${tool.name}`);
  if (!result.success) throw invalid(tool, result.error, { input, raw }, schema);
  return { args: result.data, warnings };
}

const commonFields = z.object({ ...hiddenFields, model: modelField, continuation_id: continuationId });

export type CommonArguments = ReturnType<typeof commonOf>;

/** What every tool that works on a thread may be given; undefined: the caller did not say. */
export function commonOf(args: Record<string, unknown>) {
  const given = commonFields.parse(args);
  return {
    model: given.model,
    continuationId: given.continuation_id,
    temperature: given.temperature,
    effort: given.thinking_mode,
    webSearch: given.use_websearch,
    context: given.context ?? 'thread',
    allowFallback: given.allow_fallback,
    useSearch: given.use_search,
  };
}

/** Of a call, or of a tool, that only a server takes which may write. */
export const readOnlyError = (what: string): AppError =>
  securityError(`${what} changes files or threads, and this server, or the token of this client, is read-only.`, {
    class: 'read_only',
    next: 'Continue without it, or ask the operator for a token that may write, or to turn off POLYLOGUE_READ_ONLY.',
  });

const isNothing = (value: unknown): boolean => value === null || value === undefined || value === '';

/** An empty text stays where the field must be there and may be empty: a first step has no findings yet. */
function takesEmpty({ fields }: ToolDefinition, name: string, value: unknown): boolean {
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (value !== '' || !field) return false;
  return z.safeParse(field, '').success && !z.safeParse(field, undefined).success;
}

/** Hosts that fill in every field write 0 where nothing is meant. Where one field can't mean it, none of the call's zeros does. */
function zerosForNothing({ fields, accepts }: ToolDefinition, raw: Record<string, unknown>): Set<string> {
  const zeros = Object.entries({ ...accepts, ...fields }).filter(
    ([name, field]) => raw[name] === 0 && z.safeParse(field, undefined).success,
  );
  return new Set(zeros.some(([, field]) => !z.safeParse(field, 0).success) ? zeros.map(([name]) => name) : []);
}

const renamedTo = ({ renamed }: ToolDefinition, name: string): string =>
  (renamed && Object.hasOwn(renamed, name) ? renamed[name] : undefined) ?? name;

/** The three of `names` that are most like a name. */
export const nearestNames = (name: string, names: readonly string[]): string[] =>
  names.toSorted((a, b) => distance(name, a) - distance(name, b)).slice(0, 3);

/** The field that a name was probably meant to be: two slips at the most, one in a short name. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const limit = given.length <= 5 ? 1 : 2;
  const flat = given.toLowerCase().replaceAll('-', '_');
  return names.find(name => name === flat) ?? names.find(name => distance(flat, name) <= limit);
}

/** Names of fields, and of lists, whose texts name something: a list or an object there is no text, but a mistake. */
const naming =
  /(^|_)(ids?|models?|synthesizer|files?|paths?|images?|dir|extension|name|provider|role|engine|cursor|filter|to|examples)(_|$)/;

function coerce(value: unknown, property: Property, name: string): unknown {
  if (Array.isArray(property.anyOf)) return coerceToForm(value, property.anyOf.filter(isRecord), name);
  switch (property.type) {
    case 'array':
      return listFrom(value)
        .filter(item => !isNothing(item))
        .map(item => (isRecord(property.items) ? coerce(item, property.items, name) : item))
        .filter(item => !isRecord(item) || Object.keys(item).length > 0);
    case 'object':
      return objectFrom(value, property);
    case 'integer':
    case 'number':
      return typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;
    case 'boolean':
      return typeof value === 'string' ? (parsedJson(value.trim().toLowerCase()) ?? value) : value;
    case 'string':
      if (typeof value === 'object' && (property.enum !== undefined || naming.test(name))) return value;
      return wordFrom(asText(value), property.enum);
    default:
      return value;
  }
}

/** The form of several that a value was meant in: an object, also as JSON text, or another. */
function coerceToForm(value: unknown, forms: readonly Property[], name: string): unknown {
  const isObject = isRecord(value) || (typeof value === 'string' && value.trimStart().startsWith('{'));
  const form = forms.find(({ type }) => (type === 'object') === isObject);
  return form ? coerce(value, form, name) : value;
}

/** What a caller wrote where a text belongs: the items of a list line by line, an object as JSON. */
function asText(value: unknown): string {
  if (isNothing(value)) return '';
  if (Array.isArray(value)) return value.map(asText).filter(Boolean).join('\n');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Fields for ids that this product gave out. */
const idFields = new Set(['continuation_id', 'job_id', 'run_id']);

/** One of few words, however it is spelt: `Very High` is `very_high`. */
function wordFrom(value: string, allowed: unknown): string {
  if (!Array.isArray(allowed) || allowed.includes(value)) return value;
  const flat = (text: unknown) =>
    String(text)
      .toLowerCase()
      .match(/[^\s_-]+/g)
      ?.join('_');
  return allowed.find(word => flat(word) === flat(value)) ?? value;
}

function listFrom(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  const parsed = typeof value === 'string' && value.trimStart().startsWith('[') ? parsedJson(value) : undefined;
  // A text that is no JSON list after all is a name that happens to begin with a bracket.
  return Array.isArray(parsed) ? parsed : [value];
}

/** An object, also as JSON text. A plain text is its one required field, or, where there are no fields, an issue. */
function objectFrom(value: unknown, { properties, required }: Property): unknown {
  const parsed = typeof value === 'string' && value.trimStart().startsWith('{') ? parsedJson(value) : value;
  if (isRecord(parsed))
    return coerceFields(parsed, isRecord(properties) ? properties : { severity: { type: 'string' } });
  if (typeof value !== 'string') return value;
  if (!isRecord(properties)) return { severity: 'unrated', description: value };
  return Array.isArray(required) && required.length === 1 ? { [String(required[0])]: value } : value;
}

function coerceFields(value: Record<string, unknown>, properties: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(value).flatMap(([name, inner]) => {
    if (isNothing(inner)) return [];
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return [[name, isRecord(property) ? coerce(inner, property, name) : inner]];
  });
  return Object.fromEntries(entries);
}

/** Fields that name files. Where it is not known which of them is meant, errors say `files`. */
const fileFields = ['absolute_file_paths', 'relevant_files', 'file_path'];

/** The name that the caller used for a field, as far as he sent it. */
function writtenName(tool: ToolDefinition, raw: Record<string, unknown>, name: string): string {
  const sent = Object.keys(raw).filter(key => !isNothing(raw[key]));
  if (sent.includes(name)) return name;
  const understood = olderNames(tool);
  const older = name === 'step' ? questionNames : name === 'findings' ? ['current_analysis', ...evidenceNames] : [];
  const meant = (key: string) => renamedTo(tool, key);
  const known =
    sent.find(key => meant(key) === name) ?? older.find(key => understood.includes(key) && sent.includes(key));
  if (known !== undefined || name !== 'files') return known ?? name;
  return (
    sent.find(key => fileFields.includes(meant(key))) ?? fileFields.find(key => Object.hasOwn(tool.fields, key)) ?? name
  );
}

/** A field of a tool, or a place in it (`models.0.stance`), as the caller wrote it: by his name, no deeper than what he sent. */
export function fieldAsWritten(tool: ToolDefinition, raw: Record<string, unknown>, field: string): string {
  const [name = '', ...path] = field.split('.');
  const written = writtenName(tool, raw, name);
  const place = [written];
  let value = raw[written];
  for (const key of path) {
    if (typeof value === 'string') value = parsedJson(value);
    // A lone object where the tool has a list.
    if (isRecord(value) && /^\d+$/.test(key) && !Object.hasOwn(value, key)) continue;
    if (Array.isArray(value)) value = value[Number(key)];
    else if (isRecord(value)) value = value[key];
    else break;
    place.push(key);
  }
  return place.join('.');
}

function invalid(
  tool: ToolDefinition,
  error: z.ZodError,
  { input, raw }: Record<'input' | 'raw', Record<string, unknown>>,
  schema: ToolSchema,
): Error {
  const fields = error.issues.flatMap(issuesIn).map((issue): FieldError => {
    const field = issue.path.join('.');
    const choices = schema.properties[String(issue.path[0])]?.enum;
    const missing = issue.path.length === 1 && !(field in input);
    const wrong = issue.code === 'invalid_value' && Array.isArray(choices) ? 'not an allowed value' : issue.message;
    return {
      field: missing ? field : fieldAsWritten(tool, raw, field),
      error: missing ? 'missing' : wrong,
      ...(Array.isArray(choices) && { allowed: choices.map(String) }),
    };
  });
  const allMissing = fields.every(field => field.error === 'missing');
  const details = fields.map(
    ({ field, error: what, allowed }) => `${field}: ${what}${allowed ? ` (allowed: ${allowed.join(', ')})` : ''}`,
  );
  return inputError(`${tool.name} got invalid arguments: ${details.join('; ')}.`, {
    code: allMissing ? 'MISSING_PARAMETER' : 'INVALID_INPUT_FORMAT',
    next: `${allMissing ? 'Add' : 'Correct'} ${fields.map(field => `"${field.field}"`).join(', ')} and resend the call.`,
    validationErrors: fields,
  });
}

/** Of a value that may have several forms, what is wrong with the one that it was meant in. */
function issuesIn(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  const meant =
    issue.code === 'invalid_union' ? issue.errors.find(form => form.every(({ path }) => path.length > 0)) : undefined;
  return meant?.map(inner => ({ ...inner, path: [...issue.path, ...inner.path] })) ?? [issue];
}
