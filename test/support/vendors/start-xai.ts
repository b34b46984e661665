import { isRecord } from '../../../src/core/json.ts';
import { checkResponses } from './check-responses.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { type FieldTable, firstFieldFault } from './field-check.ts';
import { createPrefixCache } from './prefix-cache.ts';
import { tokensOf } from './prompt.ts';
import { readResponses } from './read-responses.ts';
import type { Refusal } from './refusal.ts';
import type { Reply } from './reply.ts';
import { responsesWire } from './responses-wire.ts';
import { startVendor } from './start-vendor.ts';
import type { VendorKind } from './vendor-kind.ts';
import type { Frame, Wire } from './wire.ts';
import { listOf, recordOf, recordsOf, stringOf } from './wire-values.ts';

const fields: FieldTable = {
  include: ['strings'],
  input: ['string', 'array'],
  instructions: ['string'],
  max_output_tokens: ['integer'],
  max_turns: ['integer'],
  model: ['string'],
  parallel_tool_calls: ['boolean'],
  previous_response_id: ['string'],
  prompt_cache_key: ['string'],
  reasoning: ['object'],
  search_parameters: ['object'],
  store: ['boolean'],
  stream: ['boolean'],
  temperature: ['number'],
  text: ['object'],
  tool_choice: ['string', 'object'],
  tools: ['array'],
  top_logprobs: ['integer'],
  top_p: ['number'],
  user: ['string'],
};

const searchFields = ['type', 'filters', 'enable_image_search', 'enable_image_understanding'];

const codes: Readonly<Record<number, [code: string, error: string]>> = {
  400: ['Client specified an invalid argument', 'The request was not valid.'],
  401: ['The caller does not have valid authentication', 'No credentials were given.'],
  402: ['Payment required', 'Your team has used all of its credits.'],
  403: ['The caller does not have permission to execute the specified operation', 'Your team is blocked.'],
  404: ['Some requested entity was not found', 'The model the-model does not exist.'],
  429: ['Some resource has been exhausted', 'Too many requests for team: 1/s. Please slow down.'],
  503: ['The service is currently unavailable', 'Service temporarily unavailable. The model is at capacity.'],
};

/** xAI's error: a sentence for a code, and a text where others have an object. */
function refusal(status: number, message?: string): Refusal {
  const [code, error] = codes[status] ?? ['Internal error', 'Internal error.'];
  const said = message ?? error;
  return { status, message: said, body: { code, error: said } };
}

function effortsOf(model: string): readonly string[] {
  if (/^grok-4\.3/.test(model)) return ['none', 'low', 'medium', 'high', 'xhigh'];
  return /^grok-(4\.([5-9]|20-multi)|[5-9])/.test(model) ? ['low', 'medium', 'high', 'xhigh'] : [];
}

function check(body: Record<string, unknown>): Refusal | undefined {
  const fault = firstFieldFault(body, fields, true);
  if (fault) return refusal(422, `Failed to deserialize the JSON body into the target type: ${fault.field}`);
  const { max_turns: turns, search_parameters: _search, ...common } = body;
  if (typeof turns === 'number' && turns < 1) return refusal(400, 'max_turns must be at least 1.');
  const shared = checkResponses(common);
  if (shared) return refusal(400, shared.message);
  const search = recordsOf(body.tools).find(tool => tool.type === 'web_search');
  const stray = Object.keys(search ?? {}).find(key => !searchFields.includes(key));
  if (stray) return refusal(422, `Failed to deserialize the JSON body into the target type: tools: ${stray}`);
  if (search && /^grok-[1-3]/.test(stringOf(body.model)))
    return refusal(400, `Model ${stringOf(body.model)} does not support server-side tools.`);
  const { effort } = recordOf(body.reasoning);
  const model = stringOf(body.model);
  if (effort == null || effortsOf(model).includes(stringOf(effort))) return undefined;
  return refusal(400, `Model ${model} does not support parameter reasoningEffort.`);
}

/** What a token costs here, cached or not, in the vendor's own unit of 10⁻¹⁰ dollars; enough to tell costs apart. */
const ticksPerToken = 30_000;
/** $5 for a thousand. */
const ticksPerSearch = 50_000_000;

/** Thoughts are always summed up, carry a status, and are sealed on request, by the newest model always. */
function xaiWire(body: Record<string, unknown>, reply: Reply): Wire {
  const sealed = listOf(body.include).includes('reasoning.encrypted_content') || reply.model === 'grok-4.7';
  const include = sealed ? ['reasoning.encrypted_content'] : [];
  const wire = responsesWire(
    { ...body, include, reasoning: { ...recordOf(body.reasoning), summary: 'detailed' } },
    reply,
  );
  const searches = reply.pages.length > 0 ? 1 : 0;
  const told = (frames: Frame[]) => frames.map(frame => ({ ...frame, data: withStatus(frame.data, searches) }));
  return {
    open: () => told(wire.open()),
    text: piece => wire.text(piece),
    close: () => told(wire.close()),
    fail: () => wire.fail(),
    whole: () => recordOf(withStatus(wire.whole(), searches)),
  };
}

/** A tool that brought something is charged with the tokens. */
function withStatus(data: Frame['data'], searches: number): Frame['data'] {
  const text = JSON.stringify(data, (key, value: unknown) => {
    if (!isRecord(value)) return value;
    if (key === 'usage')
      return {
        ...value,
        num_server_side_tools_used: searches,
        server_side_tool_usage_details: { web_search_calls: searches, x_search_calls: 0, code_interpreter_calls: 0 },
        cost_in_usd_ticks: Number(value.total_tokens) * ticksPerToken + searches * ticksPerSearch,
      };
    return value.type === 'reasoning' ? { ...value, status: 'completed' } : value;
  });
  return recordOf(JSON.parse(text));
}

/** xAI: POST /responses and GET /models. A wrong key is an invalid argument there, not a missing right. */
export function startXai(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const prefixes = createPrefixCache();
  const keys = options.keys ?? ['test-key'];
  const kind: VendorKind = {
    routes: { 'POST /responses': 'responses', 'GET /models': 'models' },
    authorise({ authorization = '' }) {
      const [scheme, key = ''] = authorization.split(' ');
      if (scheme !== 'Bearer' || key === '') return refusal(401);
      const shown = `${key.slice(0, 2)}***${key.slice(-2)}`;
      if (keys.includes(key)) return undefined;
      return refusal(400, `Incorrect API key provided: ${shown}. You can obtain an API key from https://console.x.ai.`);
    },
    check: (_dialect, body) => check(body),
    read: (_dialect, body) => readResponses(body),
    cache: (_dialect, body, segments) => ({
      read: prefixes.cached(`${stringOf(body.model)} ${stringOf(body.prompt_cache_key)}`, segments),
      written: 0,
      wire: reply => xaiWire(body, { ...reply, usage: { ...reply.usage, cacheWrite: 0 } }),
    }),
    listing: models => ({
      object: 'list',
      data: models.map(({ id, window }) => ({
        id,
        object: 'model',
        created: 1_700_000_000,
        owned_by: 'xai',
        ...(window !== undefined && { context_length: window }),
      })),
    }),
    headers: id => ({ 'x-request-id': id }),
    stamp: body => body,
    badJson: () => refusal(400),
    wrongAddress: () => refusal(404),
    unknownModel: id => refusal(404, `The model ${id} does not exist or your team does not have access to it.`),
    tooLong: (_dialect, tokens, window) =>
      refusal(400, `This model's maximum prompt length is ${window} but the request contains ${tokens} tokens.`),
    statusBody: status => refusal(status).body,
  };
  return startVendor(kind, tokensOf, options);
}
