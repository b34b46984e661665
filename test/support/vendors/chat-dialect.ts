import { callDeltas, finishOf, wholeCalls } from './chat-wire.ts';
import { checkChatMessages } from './check-chat.ts';
import { chatTools } from './check-tools.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { type FieldTable, firstFieldFault } from './field-check.ts';
import { createPrefixCache } from './prefix-cache.ts';
import { tokensOf } from './prompt.ts';
import { readChat } from './read-chat.ts';
import type { Refusal } from './refusal.ts';
import type { Reply } from './reply.ts';
import { startVendor } from './start-vendor.ts';
import type { VendorKind } from './vendor-kind.ts';
import type { Frame, Wire } from './wire.ts';
import { recordOf, recordsOf, stringOf } from './wire-values.ts';

type Value = Record<string, unknown>;

/** What sets a vendor of OpenAI's chat dialect apart from the others. */
export interface ChatDialect {
  /** The version path; empty for a vendor without one. */
  root: string;
  /** All fields that a body may have. */
  fields: FieldTable;
  /** The vendor's error for a status; the message in its own words where none is given. */
  refusal(status: number, message?: string, code?: string): Refusal;
  /** What it refuses beyond unknown fields and malformed messages. */
  check(body: Value, headers: Record<string, string>): Refusal | undefined;
  /** A list of parts is taken only where an image is among them. */
  plainTexts?: boolean;
  /** Messages of the assistant may carry their thoughts. */
  takesThoughts?: boolean;
  /** The field of the thoughts; undefined: they stand in tags in front of the answer. */
  thoughtsField(body: Value): string | undefined;
  usage(usage: Reply['usage']): Value;
  /** What the last chunk of the answer carries beside the finish. */
  lastChunk?(reply: Reply, usage: Value, body: Value): Value;
  /** The vendor's own word for how an answer ended; default OpenAI's. */
  finish?(finish: Reply['finish']): string;
  /** What an answer in one piece carries beside it. */
  whole?(reply: Reply): Value;
  /** An answer of another form than text, such as a call of a tool. */
  wire?(body: Value, reply: Reply): Wire | undefined;
  beside?: VendorKind['beside'];
  headers?(id: string): Record<string, string>;
  /** What the vendor does with a wrong key; default a 401. */
  wrongKey?(key: string): Refusal;
  tooLong(tokens: number, window: number): Refusal;
}

/** POST /chat/completions and GET /models, as this vendor has them. */
export function startChatDialect(dialect: ChatDialect, options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const prefixes = createPrefixCache();
  const keys = options.keys ?? ['test-key'];
  const kind: VendorKind = {
    root: dialect.root,
    routes: { 'POST /chat/completions': 'chat', 'GET /models': 'models' },
    authorise({ authorization = '' }) {
      const [scheme, key = ''] = authorization.split(' ');
      if (keys.length === 0 || (scheme === 'Bearer' && keys.includes(key))) return undefined;
      return dialect.wrongKey?.(key) ?? dialect.refusal(401);
    },
    check: (_dialect, body, headers) => checkBody(dialect, body, headers),
    read(_dialect, body) {
      const reading = readChat(body);
      return { ...reading, parameters: { parameters: reading.parameters, thinking: body.thinking } };
    },
    cache: (_dialect, body, segments) => ({
      read: prefixes.cached(stringOf(body.model), segments),
      written: 0,
      wire: reply => dialect.wire?.(body, reply) ?? dialectWire(dialect, body, reply),
    }),
    listing: models => ({
      object: 'list',
      data: models.map(({ id, window }) => ({
        id,
        object: 'model',
        owned_by: 'system',
        ...(window !== undefined && { context_window: window }),
      })),
    }),
    headers: id => dialect.headers?.(id) ?? {},
    ...(dialect.beside && { beside: dialect.beside }),
    stamp: body => body,
    badJson: () => dialect.refusal(400, 'The body is no JSON.'),
    wrongAddress: (method, path) => dialect.refusal(404, `Unknown request URL: ${method} ${path}.`),
    unknownModel: id => dialect.refusal(404, `The model \`${id}\` does not exist or you do not have access to it.`),
    tooLong: (_dialect, tokens, window) => dialect.tooLong(tokens, window),
    statusBody: status => dialect.refusal(status).body,
  };
  return startVendor(kind, tokensOf, options);
}

function checkBody(dialect: ChatDialect, body: Value, headers: Record<string, string>): Refusal | undefined {
  const fault = firstFieldFault(body, dialect.fields, true);
  if (fault?.kind === 'unknown') return dialect.refusal(400, `property '${fault.field}' is unsupported`);
  if (fault) return dialect.refusal(400, `'${fault.field}' must be of type ${fault.expected.join(' or ')}`);
  if (!stringOf(body.model)) return dialect.refusal(400, "'model' is required");
  if (body.stream_options != null && body.stream !== true)
    return dialect.refusal(400, 'stream_options is only allowed with stream');
  const refused = checkChatMessages(body.messages) ?? chatTools(body, true);
  if (refused) return dialect.refusal(400, refused.message);
  for (const message of recordsOf(body.messages)) {
    if (message.reasoning_content !== undefined && !(dialect.takesThoughts && message.role === 'assistant'))
      return dialect.refusal(400, "property 'reasoning_content' is unsupported in a message");
    const parts = Array.isArray(message.content) ? recordsOf(message.content) : undefined;
    if (dialect.plainTexts && parts?.every(part => part.type === 'text'))
      return dialect.refusal(400, `invalid type for messages.content: expected a string`);
  }
  return dialect.check(body, headers);
}

function dialectWire(dialect: ChatDialect, body: Value, reply: Reply): Wire {
  const withUsage = recordOf(body.stream_options).include_usage === true;
  const common = { id: `chatcmpl-${reply.id}`, created: reply.created, model: reply.model };
  const usage = dialect.usage(reply.usage);
  const field = dialect.thoughtsField(body);
  const finish = finishOf(reply, dialect.finish?.(reply.finish) ?? reply.finish);
  const chunk = (rest: Value): Frame => ({ data: { ...common, object: 'chat.completion.chunk', ...rest } });
  const delta = (content: Value, finish: string | null = null): Value => ({
    choices: [{ index: 0, delta: content, logprobs: null, finish_reason: finish }],
  });
  const inline = field === undefined && reply.reasoning !== '' ? `<think>\n${reply.reasoning}\n</think>\n\n` : '';
  const thoughts: Value[] =
    field !== undefined
      ? reply.reasoning === ''
        ? []
        : [{ [field]: reply.reasoning }]
      : // Cut inside of both tags, as tokens fall.
        piecesOf(inline).map(content => ({ content }));
  return {
    open: () => [chunk(delta({ role: 'assistant', content: '' })), ...thoughts.map(thought => chunk(delta(thought)))],
    text: piece => chunk(delta({ content: piece })),
    close: () => [
      ...callDeltas(reply).map(content => chunk(delta(content))),
      chunk({ ...delta({}, finish), ...dialect.lastChunk?.(reply, usage, body) }),
      ...(withUsage ? [chunk({ choices: [], usage })] : []),
      { data: '[DONE]' },
    ],
    fail: () => [{ data: recordOf(dialect.refusal(500).body) }],
    whole: () => ({
      ...common,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: inline + reply.text,
            ...(field !== undefined && reply.reasoning !== '' && { [field]: reply.reasoning }),
            ...wholeCalls(reply),
          },
          logprobs: null,
          finish_reason: finish,
        },
      ],
      usage,
      ...dialect.whole?.(reply),
    }),
  };
}

function piecesOf(text: string): string[] {
  if (text === '') return [];
  return [text.slice(0, 3), text.slice(3, -7), text.slice(-7)];
}
