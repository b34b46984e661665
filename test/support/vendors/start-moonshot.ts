import { type ChatDialect, startChatDialect } from './chat-dialect.ts';
import type { FakeVendor, FakeVendorOptions } from './fake-vendor.ts';
import { createFileShelf, type FileShelf } from './file-shelf.ts';
import { createFormula, type Formula } from './moonshot-formula.ts';
import { createSearches, type Searches } from './moonshot-search.ts';
import { createMoonshotServices, type MoonshotServices } from './moonshot-services.ts';
import type { Refusal } from './refusal.ts';
import { recordOf, stringOf } from './wire-values.ts';

const texts: Readonly<Record<number, [message: string, type: string]>> = {
  401: ['Incorrect API key provided', 'incorrect_api_key_error'],
  402: ['Your account is suspended, please check your plan and billing details', 'exceeded_current_quota_error'],
  403: ['The API you are accessing is not open', 'permission_denied_error'],
  404: ['Not found the model or Permission denied', 'resource_not_found_error'],
  429: ['Your account request reached max request, please try again after 1 seconds', 'rate_limit_reached_error'],
};

function moonshotRefusal(status: number, message?: string, type?: string): Refusal {
  const fallback: [string, string] =
    status < 500 ? ['Invalid request', 'invalid_request_error'] : ['Failed to process the request', 'server_error'];
  const [text, kind] = texts[status] ?? fallback;
  const said = message ?? text;
  const told = type ?? (message === undefined ? kind : status < 500 && status !== 401 ? 'invalid_request_error' : kind);
  return { status, message: said, body: { error: { message: said, type: told } } };
}

const extensions =
  /\.(pdf|txt|csv|docx?|xlsx?|pptx?|md|jpe?g|png|bmp|gif|svg|webp|epub|mobi|html|json|log|go|h|c|cpp|java|js|css|py|ya?ml|ini|conf|tsx?)$/i;

export interface FakeMoonshot extends FakeVendor {
  files: FileShelf;
  searches: Searches;
  formula: Formula;
  services: MoonshotServices;
}

export interface MoonshotOptions extends FakeVendorOptions {
  /** The most files of the account; default 1,000. */
  maxFiles?: number;
  maxFileBytes?: number;
}

/** Moonshot: OpenAI's chat with thinking and a search of its own, and its files, balance and counter of tokens. */
export async function startMoonshot(options: MoonshotOptions = {}): Promise<FakeMoonshot> {
  const refuse = (status: number, message: string) => {
    const { body } = moonshotRefusal(status, message);
    return { status, body };
  };
  const files = createFileShelf({
    purpose: 'file-extract',
    extensions,
    maxBytes: options.maxFileBytes ?? 100 * 1024 * 1024,
    maxFiles: options.maxFiles ?? 1_000,
    refusal: refuse,
    content: file => ({
      status: 200,
      body: JSON.stringify({
        content: extracted(file.bytes),
        file_type: 'application/pdf',
        filename: file.filename,
        title: '',
        type: 'file',
      }),
    }),
  });
  const formula = createFormula(refuse);
  const searches = createSearches(formula);
  const services = createMoonshotServices(refuse);
  const dialect: ChatDialect = {
    root: '/v1',
    fields,
    refusal: moonshotRefusal,
    check: body => check(body) ?? searches.check(body),
    takesThoughts: true,
    thoughtsField: () => 'reasoning_content',
    wire: (body, reply) => searches.wire(body, reply),
    usage: ({ input, output, reasoning, cacheRead }) => ({
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      cached_tokens: cacheRead,
      prompt_tokens_details: { cached_tokens: cacheRead },
      completion_tokens_details: { reasoning_tokens: reasoning },
    }),
    headers: id => ({ 'msh-request-id': id }),
    tooLong: (_tokens, window) =>
      moonshotRefusal(400, `Invalid request: Your request exceeded model token limit: ${window}`),
    beside: request => files.beside(request) ?? formula.beside(request) ?? services.beside(request),
  };
  const vendor = await startChatDialect(dialect, options);
  return Object.assign(vendor, { files, searches, formula, services });
}

/** What stands in a document of the tests: everything after its first line. */
function extracted(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  return text.startsWith('%PDF') ? text.slice(text.indexOf('\n') + 1) : text;
}

const fields: ChatDialect['fields'] = {
  frequency_penalty: ['number'],
  max_completion_tokens: ['integer'],
  max_tokens: ['integer'],
  messages: ['array'],
  model: ['string'],
  n: ['integer'],
  presence_penalty: ['number'],
  prompt_cache_key: ['string'],
  prompt_cache_options: ['object'],
  reasoning_effort: ['string'],
  response_format: ['object'],
  safety_identifier: ['string'],
  stop: ['string', 'strings'],
  stream: ['boolean'],
  stream_options: ['object'],
  temperature: ['number'],
  thinking: ['object'],
  tool_choice: ['string', 'object'],
  tools: ['array'],
  top_p: ['number'],
};

/** Families by how they think. */
const switches = /^kimi-k2\.[56]$/;
const alwaysThinks = /^kimi-k2\.7/;
const levels = /^kimi-k3/;

function check(body: Record<string, unknown>): Refusal | undefined {
  const model = stringOf(body.model);
  const { thinking, reasoning_effort: effort, temperature, max_tokens: old, prompt_cache_options: caching } = body;
  const type = recordOf(thinking).type;
  if (old != null) return moonshotRefusal(400, 'Invalid request: max_tokens is deprecated, use max_completion_tokens');
  if (temperature != null && /^kimi-k(2\.[5-9]|3)/.test(model))
    return moonshotRefusal(400, 'Invalid request: invalid temperature: only 1 is allowed for this model');
  if (thinking != null && !(switches.test(model) || (alwaysThinks.test(model) && type === 'enabled')))
    return moonshotRefusal(400, 'Invalid request: thinking is not supported with this model');
  if (thinking != null && type !== 'enabled' && type !== 'disabled')
    return moonshotRefusal(400, 'Invalid request: thinking.type must be enabled or disabled');
  if (caching != null && !levels.test(model))
    return moonshotRefusal(400, 'Invalid request: prompt_cache_options is not supported with this model');
  if (caching != null && !['5m', '1h'].includes(stringOf(recordOf(caching).ttl)))
    return moonshotRefusal(400, 'Invalid request: prompt_cache_options.ttl must be 5m or 1h');
  if (effort == null) return undefined;
  if (!levels.test(model))
    return moonshotRefusal(400, 'Invalid request: reasoning_effort is not supported with this model');
  return ['low', 'high', 'max'].includes(stringOf(effort))
    ? undefined
    : moonshotRefusal(400, 'Invalid request: reasoning_effort must be low, high or max');
}
