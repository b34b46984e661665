import { isRecord } from '../../../src/core/json.ts';
import { type ChatDialect, startChatDialect } from './chat-dialect.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { type FieldTable, firstFieldFault } from './field-check.ts';
import type { Refusal } from './refusal.ts';
import type { BesideAnswer, BesideRequest } from './vendor-kind.ts';
import { recordOf, recordsOf, stringOf } from './wire-values.ts';

const texts: Readonly<Record<number, [message: string, code: string]>> = {
  401: ['token expired or incorrect', '1002'],
  402: ['Insufficient balance or no resource package. Please recharge.', '1113'],
  403: ['You do not have permission to access this API', '1220'],
  404: ['Unknown Model, please check the model code.', '1211'],
  429: ['Rate limit reached for requests', '1302'],
};

function zhipuRefusal(status: number, message?: string, code?: string): Refusal {
  const fallback: [string, string] = status < 500 ? ['API call failed', '1200'] : ['Internal network failure', '1234'];
  const [text, number] = texts[status] ?? fallback;
  const said = message ?? text;
  return {
    status,
    message: said,
    body: { error: { code: code ?? (message === undefined ? number : '1210'), message: said } },
  };
}

export interface Hit {
  title: string;
  content: string;
  link: string;
  media: string;
  icon: string;
  refer: string;
  publish_date: string;
}

export interface FakeZhipu extends FakeVendor {
  /** What a search finds, in a chat and by itself. */
  hits: Hit[];
  /** Bodies of searches and embeddings. */
  asked: { path: string; body: Record<string, unknown>; headers: Record<string, string> }[];
}

const fields: FieldTable = {
  do_sample: ['boolean'],
  max_tokens: ['integer'],
  messages: ['array'],
  model: ['string'],
  reasoning_effort: ['string'],
  request_id: ['string'],
  response_format: ['object'],
  stop: ['strings'],
  stream: ['boolean'],
  stream_options: ['object'],
  temperature: ['number'],
  thinking: ['object'],
  tool_choice: ['string'],
  tool_stream: ['boolean'],
  tools: ['array'],
  top_p: ['number'],
  user_id: ['string'],
};

/** GLM: OpenAI's chat below /api/paas/v4, with thinking and a search of its own; searches and embeddings beside it. */
export async function startZhipu(options: FakeVendorOptions = {}): Promise<FakeZhipu> {
  const refuse = (status: number, message: string): BesideAnswer => ({
    status,
    body: zhipuRefusal(status, message).body,
  });
  const state: Pick<FakeZhipu, 'hits' | 'asked'> = { hits: [], asked: [] };
  const dialect: ChatDialect = {
    root: '/api/paas/v4',
    fields,
    refusal: zhipuRefusal,
    check,
    plainTexts: true,
    thoughtsField: () => 'reasoning_content',
    takesThoughts: true,
    finish: finish => (finish === 'content_filter' ? 'sensitive' : finish),
    usage: ({ input, output, reasoning, cacheRead }) => ({
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cacheRead },
      completion_tokens_details: { reasoning_tokens: reasoning },
    }),
    // Told at the end of every stream, asked for or not.
    lastChunk: (_reply, usage, body) => ({
      usage,
      ...(searchOf(body)?.search_result === true && { web_search: state.hits }),
    }),
    tooLong: () => zhipuRefusal(400, 'Prompt exceeds max length', '1261'),
    beside: request => beside(state, request, refuse),
  };
  const vendor = await startChatDialect(dialect, options);
  return Object.assign(vendor, { hits: state.hits, asked: state.asked });
}

function searchOf(body: Record<string, unknown>): Record<string, unknown> | undefined {
  const tool = recordsOf(body.tools).find(({ type }) => type === 'web_search');
  return tool && recordOf(tool.web_search);
}

const engines = /^(search-prime|search_std|search_pro(_\w+)?)$/;

function check(body: Record<string, unknown>): Refusal | undefined {
  const model = stringOf(body.model);
  const { thinking, reasoning_effort: effort } = body;
  const type = recordOf(thinking).type;
  if (thinking != null && type !== 'enabled' && type !== 'disabled')
    return zhipuRefusal(400, 'Invalid thinking parameter');
  if (type === 'disabled' && /^glm-5\.3/.test(model))
    return zhipuRefusal(400, 'thinking can not be disabled for this model');
  if (effort != null && !/^glm-5\.[2-9]/.test(model))
    return zhipuRefusal(400, 'reasoning_effort is not supported by this model');
  if (effort != null && !['low', 'high', 'max'].includes(stringOf(effort)))
    return zhipuRefusal(400, 'Invalid reasoning_effort');
  const search = searchOf(body);
  if (recordsOf(body.tools).length > 0 && body.tool_choice !== 'auto')
    return zhipuRefusal(400, "tool_choice supports only 'auto'");
  if (!search) return undefined;
  if (search.enable !== true || !engines.test(stringOf(search.search_engine)))
    return zhipuRefusal(400, 'Invalid web_search parameter');
  return countFault(search.count, search.search_engine);
}

/** Sogou has pages of ten. */
function countFault(count: unknown, engine: unknown): Refusal | undefined {
  if (count === undefined) return undefined;
  const sound = typeof count === 'number' && Number.isInteger(count) && count >= 1 && count <= 50;
  if (!sound) return zhipuRefusal(400, 'count must be from 1 to 50');
  return engine === 'search_pro_sogou' && count % 10 !== 0
    ? zhipuRefusal(400, 'count must be 10, 20, 30, 40 or 50')
    : undefined;
}

const searchFields: FieldTable = {
  content_size: ['string'],
  count: ['integer'],
  request_id: ['string'],
  search_domain_filter: ['string'],
  search_engine: ['string'],
  search_intent: ['boolean'],
  search_query: ['string'],
  search_recency_filter: ['string'],
  user_id: ['string'],
};
const ages = ['oneDay', 'oneWeek', 'oneMonth', 'oneYear', 'noLimit'];

function beside(
  state: Pick<FakeZhipu, 'hits' | 'asked'>,
  { method, path, headers, bytes }: BesideRequest,
  refuse: (status: number, message: string) => BesideAnswer,
): BesideAnswer | undefined {
  if (method !== 'POST' || (path !== '/web_search' && path !== '/embeddings')) return undefined;
  const parsed: unknown = JSON.parse(bytes.toString('utf8'));
  const body = isRecord(parsed) ? parsed : {};
  state.asked.push({ path, body, headers });
  if (path === '/embeddings') return embeddings(body, refuse);
  const fault = firstFieldFault(body, searchFields, true);
  if (fault) return refuse(400, `Invalid ${fault.field} parameter`);
  if (!engines.test(stringOf(body.search_engine))) return refuse(400, 'Invalid search_engine parameter');
  if (!stringOf(body.search_query)) return refuse(400, 'search_query parameter not received properly');
  if (body.search_recency_filter !== undefined && !ages.includes(stringOf(body.search_recency_filter)))
    return refuse(400, 'Invalid search_recency_filter parameter');
  if (stringOf(body.search_engine) !== 'search-prime' && typeof body.search_intent !== 'boolean')
    return refuse(400, 'search_intent parameter not received properly');
  if (countFault(body.count, body.search_engine)) return refuse(400, 'Invalid count parameter');
  return { status: 200, body: { id: 's1', created: 1_790_000_000, request_id: 'r1', search_result: state.hits } };
}

function embeddings(
  body: Record<string, unknown>,
  refuse: (status: number, message: string) => BesideAnswer,
): BesideAnswer {
  const { input, model } = body;
  const texts = Array.isArray(input) ? input : [input];
  if (!stringOf(model).startsWith('embedding-')) return refuse(400, 'Invalid model parameter');
  if (texts.length === 0 || texts.length > 64 || texts.some(text => typeof text !== 'string' || text === ''))
    return refuse(400, 'Invalid input parameter');
  // Backwards, as nothing promises an order.
  const data = texts
    .map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(String(text)) }))
    .toReversed();
  return {
    status: 200,
    body: { object: 'list', model, data, usage: { prompt_tokens: texts.length, total_tokens: texts.length } },
  };
}

/** Tells texts apart by their length and first letter. */
export function vectorOf(text: string): number[] {
  return [text.length, text.charCodeAt(0), 0.5];
}
