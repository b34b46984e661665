import { recordIn, recordsIn } from '../core/json.ts';
import type { InputKind, ModelInfo } from '../core/model.ts';
import type { LiveModel } from '../models/provider.ts';
import { addressSetting, checkedBaseUrl, defineProvider, isLocalUrl, keySetting, setting } from '../models/provider.ts';
import { firstCount, type LiveListSource, listPage } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { chatUsage, effortOption } from './shared/openai-dialect.ts';

/** The deployments of `GET {baseUrl}/models` in DIAL's form that can be conversed with. Throws like `liveList`. */
export async function dialList(source: LiveListSource, signal: AbortSignal): Promise<LiveModel[]> {
  const body = await listPage(source, '', signal);
  return recordsIn(body.data).flatMap(row => {
    const { id, capabilities, limits } = row;
    if (typeof id !== 'string' || id === '' || recordIn(capabilities).chat_completion === false) return [];
    const window = firstCount(recordIn(limits).max_total_tokens, recordIn(limits).max_prompt_tokens);
    return [{ id, ...(window && { window }), ...inputOf(row.input_attachment_types) }];
  });
}

/** Said only where the operator of the server wrote it down. */
function inputOf(types: unknown): { input?: readonly InputKind[] } {
  if (!Array.isArray(types)) return {};
  return { input: types.some(type => /^(image\/|\*\/)/.test(String(type))) ? ['text', 'image'] : ['text'] };
}

const ownHost = 'https://core.dialx.ai';

const usualVersion = '2024-12-01-preview';

export const dial = defineProvider({
  id: 'dial',
  names: [],
  title: 'DIAL',
  docs: {
    endpoint: 'POST {DIAL_API_HOST}/openai/deployments/{model}/chat/completions?api-version={DIAL_API_VERSION}',
    quirks: [
      'The key goes into the header `Api-Key`; an additional `Authorization` would be refused.',
      "What there is, the server says (`GET /openai/models`); a deployment is described by the catalogue's row of the same model, and by what the listing tells.",
      "An effort is sent to deployments of OpenAI's models alone, as `reasoning_effort`, and their output limit as `max_completion_tokens`.",
    ],
    source: 'https://dialx.ai/dial_api',
  },
  options: {
    apiKey: keySetting(['DIAL_API_KEY'], 'Key of a DIAL server; with it the deployments of that server can be asked.'),
    host: addressSetting(
      ['DIAL_API_HOST', 'DIAL_BASE_URL'],
      'Address of the DIAL server, without the path `/openai`.',
      { default: ownHost },
    ),
    apiVersion: setting(
      ['DIAL_API_VERSION'],
      'Version of the interface that is asked for, as `YYYY-MM-DD` or `YYYY-MM-DD-preview`.',
      { default: usualVersion },
    ),
  },
  openEnded: true,
  servesOthers: true,
  configured: settings => settings.apiKey !== undefined,
  async connect(settings) {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    const host = checkedBaseUrl(settings.host ?? ownHost, 'DIAL_API_HOST');
    const baseUrl = host.endsWith('/openai') ? host : `${host}/openai`;
    const headers = { 'api-key': settings.apiKey ?? '' };
    const queryParams = { 'api-version': settings.apiVersion ?? usualVersion };
    return {
      languageModel(model) {
        // The name of a deployment may have parts; each is one step of the address.
        const deployment = model.id.split('/').map(encodeURIComponent).join('/');
        const baseURL = `${baseUrl}/deployments/${deployment}`;
        const transformRequestBody = reasonsAtOpenAi(model) ? withCompletionLimit : undefined;
        const vendor = { name: 'dial', baseURL, headers, queryParams, transformRequestBody, convertUsage: chatUsage };
        return createOpenAICompatible({ ...vendor, includeUsage: true, fetch: answerFetch }).chatModel(model.id);
      },
      providerOptions: params => ({ dial: reasonsAtOpenAi(params.model) ? effortOption(params) : {} }),
      sendsStrings: () => true,
      tailRole: () => 'user',
      list: signal => dialList({ provider: 'dial', baseUrl, headers }, signal),
    };
  },
  models: () => [],
  local: settings => settings.host !== undefined && isLocalUrl(settings.host),
});

/** Deployments are called by whoever made them; by their usual names at least these are known. */
const reasonsAtOpenAi = ({ id, reasoning }: ModelInfo): boolean => reasoning && /^(o\d|gpt-[5-9])/.test(id);

/** OpenAI's reasoning models refuse the older name of the limit. */
const withCompletionLimit = ({ max_tokens: limit, ...body }: Record<string, unknown>): Record<string, unknown> =>
  limit === undefined ? body : { ...body, max_completion_tokens: limit };
