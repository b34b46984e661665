import { recordIn } from '../core/json.ts';
import type { InputKind, ModelInfo } from '../core/model.ts';
import { addressSetting, checkedBaseUrl, defineProvider, isLocalUrl, keySetting, setting } from '../models/provider.ts';
import { withSchemaInPrompt } from './shared/json-schema.ts';
import { firstCount, liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { chatUsage, effortOption } from './shared/openai-dialect.ts';

/** What DIAL's listing tells of a deployment. */
function factsOf({ capabilities, limits, input_attachment_types: types }: Record<string, unknown>) {
  if (recordIn(capabilities).chat_completion === false) return undefined;
  const { max_total_tokens: total, max_prompt_tokens: prompt, max_completion_tokens: most } = recordIn(limits);
  const window = firstCount(total, prompt);
  return { window, maxOutput: firstCount(most), ...inputOf(types) };
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
        return withSchemaInPrompt(
          createOpenAICompatible({ ...vendor, includeUsage: true, fetch: answerFetch }).chatModel(model.id),
        );
      },
      providerOptions: params => ({ dial: reasonsAtOpenAi(params.model) ? effortOption(params) : {} }),
      sendsStrings: () => true,
      list: signal => liveList({ provider: 'dial', baseUrl, headers }, signal, factsOf),
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
