import type { JSONObject, LanguageModelV4 } from '@ai-sdk/provider';
import { isRecord } from '../core/json.ts';
import { type UsesIn, use } from '../models/fees.ts';
import { type CallParams, keyedProvider, setting } from '../models/provider.ts';
import { badUpstream } from '../models/resilience/errors.ts';
import { isPathMissing, lacksPath, vendorFetch, versionedFetch } from './shared/http.ts';
import { withLooseSchemas } from './shared/json-schema.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { chatModel, chatOptions, responsesOptions } from './shared/openai-dialect.ts';
import { searchTool, withErrors } from './shared/stream-transforms.ts';

/** The families that the vendor's documents name for its search; the small ones of older generations can't. */
const searching = /^(?:gpt-4o|gpt-4\.1(?!-nano)|gpt-[5-9]|o3(?!-mini)|o4)/;

const search = searchTool('openai.web_search', ({ contentSize: size }) => (size ? { searchContextSize: size } : {}));

/** A search is charged; to open a page that it found, or to look for words in it, is not. */
const openAiUses: UsesIn = part => {
  if (part.type !== 'tool-result' || part.toolName !== 'web_search') return undefined;
  const action = isRecord(part.result) ? part.result.action : undefined;
  return isRecord(action) && action.type !== 'search' ? undefined : use('web_search', 1);
};

/** Citations with titles come only where the bare list of addresses is not asked for. */
const openAiSearchOptions = ({ webSearch }: CallParams): JSONObject =>
  webSearch ? { includeWebSearchSources: false, maxToolCalls: webSearch.maxRounds } : {};

/** The vendor refuses its search together with the effort `minimal`. */
const withEffortForSearch = (params: CallParams): CallParams =>
  params.webSearch && params.effort === 'minimal' ? { ...params, effort: 'low' } : params;

const noResponses = 'the address has no /responses, so /chat/completions is used';

export const openai = keyedProvider({
  id: 'openai',
  names: ['o'],
  title: 'OpenAI',
  docs: {
    endpoint: 'POST https://api.openai.com/v1/responses, or /chat/completions with OPENAI_API_STYLE=chat',
    quirks: [
      "Nothing is stored there (`store: false`); a thread's id is the `prompt_cache_key`, so that its beginning is found in the cache.",
      'Another server at OPENAI_BASE_URL that has no /responses is asked by /chat/completions; OPENAI_API_STYLE=chat spares the first try.',
    ],
    source: 'https://platform.openai.com/docs/api-reference/responses',
  },
  key: [['OPENAI_API_KEY'], 'Key of the OpenAI API; with it the models of OpenAI can be asked.'],
  address: [
    ['OPENAI_BASE_URL'],
    'Base address of a server that speaks like OpenAI, with or without its version path; unset: OpenAI itself.',
  ],
  baseUrl: 'https://api.openai.com/v1',
  options: {
    apiStyle: setting(
      ['OPENAI_API_STYLE'],
      'Which of its interfaces the OpenAI server is asked through: `responses` or `chat`; unset: `responses` where the address has it.',
      { choices: ['responses', 'chat'] },
    ),
  },
  async connect(access) {
    const { createOpenAI } = await import('@ai-sdk/openai');
    const { apiKey, baseUrl, settings } = access;
    const address = versionedFetch(baseUrl, answerFetch);
    const vendor = createOpenAI({ apiKey, baseURL: baseUrl, fetch: address.fetch });
    let chat = settings.apiStyle === 'chat';
    // OpenAI's own address, also that of a region, has Responses, and its chat takes what other servers refuse.
    const own = /(?:^|\.)api\.openai\.com$/.test(new URL(baseUrl).hostname);
    const mayLack = settings.apiStyle === undefined && !own;
    const responses = (id: string) => (mayLack ? watched(vendor.responses(id)) : vendor.responses(id));
    const watched = (model: LanguageModelV4) =>
      withErrors(model, error => {
        if (!isPathMissing(error)) return error;
        chat = true;
        return badUpstream(noResponses);
      });
    return {
      languageModel: model =>
        withLooseSchemas(chat ? chatModel(vendor.chat(model.id), model.id, model) : responses(model.id), 'openai'),
      providerOptions: params => ({
        openai: chat
          ? chatOptions(params, own)
          : { ...responsesOptions(withEffortForSearch(params)), ...openAiSearchOptions(params) },
      }),
      vendorTools: params => (chat ? [] : search(params)),
      usesIn: openAiUses,
      imageLimits: () => ({ max: 500, bytes: 20_000_000, allBytes: 48_000_000 }),
      sendsStrings: () => chat,
      // Chat templates of other servers often refuse instructions after the conversation.
      tailRole: () => (chat && !own ? 'user' : 'system'),
      list: signal => liveList({ ...access, fetch: address.fetch }, signal),
      async remark(signal) {
        const url = `${address.baseUrl()}/responses`;
        const headers = { ...access.headers, 'content-type': 'application/json' };
        const asked = mayLack ? await vendorFetch(url, { method: 'POST', headers, body: '{}', signal }) : undefined;
        chat ||= asked !== undefined && (await lacksPath(asked));
        await asked?.body?.cancel();
        const used = address.remark('OPENAI_BASE_URL');
        return [used, mayLack && chat ? noResponses : undefined].filter(Boolean).join('; ') || undefined;
      },
    };
  },
  searches: (model, settings) => settings.apiStyle !== 'chat' && searching.test(model.id),
});
