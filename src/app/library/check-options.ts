import { z } from 'zod';
import { nearestNames } from '../../calls/arguments.ts';
import { type FieldError, inputError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import { editDistance, nearName } from '../../core/text.ts';
import { isProvider, isStore, isTool } from '../stores.ts';

const listener = z.custom(value => typeof value === 'function', 'expected a function').optional();
const signal = z.custom(value => value instanceof AbortSignal, 'expected an AbortSignal').optional();
const text = z.string().optional();
const flag = z.boolean().optional();
const count = z.int().min(1).optional();
const words = z.record(z.string(), z.string('expected text, also for numbers and on/off').optional()).optional();

/** Whether JSON can hold it: it refers to nothing that holds it, and no number in it is a bigint. */
function isJson(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false;
  }
}

const notJson = 'expected what JSON can hold';
const args = z.record(z.string(), z.unknown()).refine(isJson, notJson);

/** A schema of zod or valibot has a `type` too, and means nothing to a vendor. What these make of it for JSON says which properties there are. */
const jsonSchema = z
  .custom(
    value => !isRecord(value) || !('~standard' in value) || 'properties' in value || 'additionalProperties' in value,
    'expected JSON Schema, as z.toJSONSchema(schema) makes it',
  )
  .pipe(z.looseObject({ type: z.literal('object') }).refine(isJson, notJson));

const toolMembers = {
  name: z.string().regex(/^[\w-]{1,64}$/, 'expected at most 64 of a-z, A-Z, 0-9, _ and -'),
  description: z.string(),
  inputSchema: jsonSchema,
  effect: z.enum(['read', 'write', 'run', 'network']),
  ms: count,
  check: listener,
  show: listener,
  approval: listener,
  run: listener.unwrap(),
};

/** May have members of its own, but none that is like one of these. */
const tool = z.looseObject(toolMembers).check(({ value, issues }) => {
  const own = Object.keys(value).filter(key => !Object.hasOwn(toolMembers, key));
  const keys = own.filter(key => nearName(key, Object.keys(toolMembers)) !== undefined);
  if (keys.length > 0) issues.push({ code: 'unrecognized_keys', keys, input: value });
});

/** Polylogue's own may be named twice. */
const areDistinct = (all: readonly (string | { name: string })[]): boolean => {
  const own = all.flatMap(each => (typeof each === 'string' ? [] : [each.name]));
  return new Set(own).size === own.length && !all.some(each => typeof each === 'string' && own.includes(each));
};

const tools = z
  .array(z.union([z.string(), tool]))
  .refine(areDistinct, 'two of them have the same name')
  .optional();

const message = z.looseObject({
  role: z.enum(['system', 'user', 'assistant']),
  section: z.enum(['preamble', 'turn', 'tail']),
  parts: z.array(
    z.discriminatedUnion('type', [
      z.looseObject({ type: z.literal('text'), text: z.string() }),
      z.looseObject({ type: z.literal('image'), mediaType: z.string(), data: z.instanceof(Uint8Array) }),
    ]),
  ),
  said: z
    .array(
      z.discriminatedUnion('type', [
        z.looseObject({ type: z.enum(['text', 'thought']), text: z.string() }),
        z.looseObject({ type: z.literal('call'), id: z.string(), name: z.string(), args: z.looseObject({}) }),
      ]),
    )
    .refine(isJson, notJson)
    .optional(),
  results: z.array(z.looseObject({ id: z.string(), name: z.string(), text: z.string() })).optional(),
});

const defaults = {
  system: z.strictObject({ base: text, useDefaultBase: flag, projectMarker: text, custom: text }).optional(),
  model: z.string().min(1).optional(),
  baseDir: text,
  params: z
    .strictObject({
      temperature: z.number().min(0).max(2).optional(),
      topP: z.number().gt(0).max(1).optional(),
      maxTokens: count,
      truncLimit: z.int().min(0).optional(),
      maxRounds: z.int().min(0).optional(),
      maxCostUsd: z.number().min(0).optional(),
    })
    .optional(),
  tools,
  onToolCall: listener,
  onChunk: listener,
  onError: listener,
  onPatch: listener,
  rag: z.union([z.boolean(), z.strictObject({ retrieve: listener.unwrap() })]).optional(),
  onQuestion: listener,
};

const shorten = { maxWords: count, focus: text, model: text, signal };
const files = z.array(z.string()).optional();
const diagnosis = z.strictObject({ stderr: z.string(), command: text, files, model: text, signal });
const events = ['request', 'response', 'tool_call', 'tool_result', 'refresh', 'trim', 'cache', 'error'] as const;

const made = <Definition>(is: (item: unknown) => item is Definition, by: string) =>
  z.array(z.custom(is, `expected what ${by} returns`)).optional();

const send = { ...defaults, message: z.string(), context: text, files, stream: flag, signal };

/** What each function takes; members that are not named are refused. */
const shapes = {
  createPolylogue: z.strictObject({
    ...{ settings: words, env: words, home: text, root: text, log: listener },
    ...{ tools: made(isTool, 'defineTool'), providers: made(isProvider, 'defineProvider') },
    stores: made(isStore, 'defineStore'),
  }),
  send: z.strictObject({ ...send, history: z.array(message).optional() }),
  'conversation.send': z.strictObject(send),
  createConversation: z.strictObject({ ...defaults, history: z.array(message).optional() }),
  setDefaults: z.strictObject(defaults),
  languageModel: z.strictObject({
    name: z.string().min(1).optional(),
    thread: z.union([z.literal(true), z.string().min(1)]).optional(),
  }),
  'providerOptions.polylogue': z.strictObject({ continuation_id: z.string().min(1).optional() }),
  listModels: z.strictObject({ fresh: flag }),
  summarizeFile: z.strictObject({ ...shorten, path: z.string() }),
  compressDiscussion: z.strictObject({ ...shorten, discussion: z.union([z.string(), z.array(message)]) }),
  analyzeError: diagnosis,
  generatePatch: diagnosis,
  callTool: z.strictObject({
    ...{ name: z.string(), args, signal },
    ...{ onProgress: listener, onText: listener, idempotencyKey: z.string().min(1).optional() },
  }),
  'commsLog.append': z.strictObject({
    ...{ payload: z.looseObject({}), tool: text, provider: text, model: text, reqId: text },
    kind: z.enum(['request', 'response', 'error', 'tool_call', 'tool_result']).optional(),
  }),
  'commsLog.read': z.strictObject({ limit: count, reqId: text, tool: text, provider: text, model: text }),
  estimateTokens: z.strictObject({ text: z.string(), model: z.string().min(1).optional() }),
  on: z.strictObject({ name: z.enum(events), listener: listener.unwrap() }),
};

/** An answer of a function that the program handed over; throws where it is none, so that a slip in it allows nothing. */
const answerOf =
  <Answer>(name: string, shape: z.ZodType<Answer>) =>
  (given: unknown): Answer => {
    const { success, data, error } = shape.safeParse(given);
    if (success) return data;
    const wrong = error.issues.flatMap(meant).map(issue => [...issue.path, issue.message].join(': '));
    throw inputError(`${name} returned something else than it may: ${wrong.join('; ')}.`, {
      next: `Return from ${name} what its type says (docs/reference/library.md).`,
    });
  };

export const checkAnswer = {
  onToolCall: answerOf(
    'onToolCall',
    z.discriminatedUnion('action', [
      z.strictObject({ action: z.literal('allow'), args: args.optional() }),
      z.strictObject({ action: z.literal('deny'), reason: z.string() }),
    ]),
  ),
  check: answerOf('check', z.union([z.strictObject({ problem: z.string() }), z.strictObject({ args })])),
  onQuestion: answerOf('onQuestion', z.string()),
  retrieve: answerOf('retrieve', z.array(z.union([z.string(), z.object({ source: z.string(), text: z.string() })]))),
};

/** Refuses settings one slip away from one of `known`; names that are like none may be meant for programs that are started. */
export function checkSettings(settings: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  for (const name of Object.keys(settings)) {
    const like = (each: string) => editDistance(name.toLowerCase(), each.toLowerCase(), 1) <= 1;
    const meant = known.includes(name) ? undefined : known.find(like);
    if (meant !== undefined)
      throw inputError(
        `createPolylogue got invalid arguments: settings.${name}: unknown option (did you mean "${meant}"?).`,
        { next: `Call createPolylogue again with "settings.${name}" corrected.` },
      );
  }
}

/** Refuses options that do not exist and values that are none of theirs; `named`: what comes as an argument of its own. */
export function checkOptions(call: keyof typeof shapes, given: unknown, named?: Record<string, unknown>): void {
  const all = isRecord(given) ? Object.keys(shapes[call].shape).filter(key => key in given) : [];
  const misplaced = all.flatMap((field): FieldError[] => {
    if (named && field in named) return [{ field, error: 'given twice, as an argument and as an option' }];
    return Object.hasOwn(Object(given), field)
      ? []
      : [{ field, error: 'inherited from a class; expected a plain object' }];
  });
  const { error } = shapes[call].safeParse(named && isRecord(given) ? { ...given, ...named } : given);
  if (!error && misplaced.length === 0) return;
  const wrong = (error?.issues ?? []).flatMap(meant).flatMap((issue): FieldError[] => {
    const place = issue.path.join('.');
    if (issue.code !== 'unrecognized_keys') return [{ field: place || 'options', error: issue.message }];
    return issue.keys.map(key => {
      const known = namesAt(shapes[call], issue.path);
      return { field: [...issue.path, key].join('.'), error: 'unknown option', allowed: nearestNames(key, known) };
    });
  });
  const fields = [...misplaced, ...wrong];
  const told = fields.map(({ field, error: what, allowed }) => {
    return `${field}: ${what}${allowed?.length ? ` (did you mean ${allowed.map(name => `"${name}"`).join(', ')}?)` : ''}`;
  });
  throw inputError(`${call} got invalid arguments: ${told.join('; ')}.`, {
    next: `Call ${call} again with ${fields.map(({ field }) => `"${field}"`).join(', ')} corrected.`,
    validationErrors: fields,
  });
}

/** Of several forms, what is wrong with the last one, which is the object where there is one; of forms by a `type`, that it is none. */
function meant(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  const last = issue.code === 'invalid_union' ? issue.errors.at(-1) : undefined;
  if (!last) return [issue];
  return last.flatMap(each => meant({ ...each, path: [...issue.path, ...each.path] }));
}

/** The options that there are at a place. */
function namesAt(shape: unknown, path: readonly PropertyKey[]): string[] {
  if (shape instanceof z.ZodOptional) return namesAt(shape.unwrap(), path);
  if (shape instanceof z.ZodUnion) return shape.options.flatMap(option => namesAt(option, path));
  const [name, ...rest] = path;
  if (shape instanceof z.ZodArray && name !== undefined) return namesAt(shape.element, rest);
  if (!(shape instanceof z.ZodObject)) return [];
  return name === undefined ? Object.keys(shape.shape) : namesAt(shape.shape[String(name)], rest);
}
