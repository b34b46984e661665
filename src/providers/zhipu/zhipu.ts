import type { JSONObject } from '@ai-sdk/provider';
import type { ModelInfo } from '../../core/model.ts';
import { closestEffort } from '../../models/effort.ts';
import { glmModel } from '../../models/extras/glm/glm-model.ts';
import { hitsToAsk, searchEngineOf } from '../../models/extras/glm/search-engine.ts';
import { withJoinedTexts } from '../../models/extras/wire/joined-texts.ts';
import { passedUse } from '../../models/fees/counted-uses.ts';
import { type CallParams, type Connection, defineProvider, type ProviderSettings } from '../../models/provider.ts';
import { liveList } from '../shared/list-models.ts';
import { answerFetch } from '../shared/plain-answer.ts';
import { glmDoor } from './api.ts';

const group = 'Providers';

export const zhipu = defineProvider({
  id: 'zhipu',
  names: ['z', 'glm', 'zai'],
  title: 'Zhipu (GLM)',
  docs: {
    endpoint: 'POST https://api.z.ai/api/paas/v4/chat/completions',
    quirks: [
      'Its search of the web is a tool beside the messages (`web_search`); the hits come with the answer and are citations.',
      'Older models only switch thinking on and off; from 5.2 on it has levels, and from 5.3 on it is always on.',
      'The same models are at BigModel in China, with another address and other search engines.',
    ],
    source: 'https://docs.z.ai',
  },
  options: {
    apiKey: {
      env: ['ZHIPUAI_API_KEY', 'GLM_API_KEY', 'ZAI_API_KEY'],
      type: 'string',
      doc: 'Key of Z.ai or BigModel; with it the GLM models can be asked and the web can be searched.',
      group,
      secret: true,
    },
    baseUrl: {
      env: ['ZHIPU_BASE_URL', 'GLM_API_URL'],
      type: 'url',
      doc: 'Whole base address of GLM, version path included; unset: Z.ai. In China: https://open.bigmodel.cn/api/paas/v4.',
      group,
      operatorOnly: true,
    },
    searchEngine: {
      env: ['GLM_SEARCH_ENGINE'],
      type: 'string',
      doc: 'Search engine that GLM uses, by its id there; unset: search-prime at Z.ai, search_pro at BigModel.',
      group,
    },
  },
  configured: settings => settings.apiKey !== undefined,
  connect,
  searches: (model: ModelInfo) => model.tools,
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const door = glmDoor(settings, () => 0);
  const engine = searchEngineOf(settings, door.baseUrl);
  const vendor = createOpenAICompatible({
    name: 'zhipu',
    baseURL: door.baseUrl,
    headers: { ...door.headers },
    includeUsage: true,
    fetch: answerFetch,
    transformRequestBody: withSearch,
  });
  return {
    languageModel: ({ id }) => withJoinedTexts(glmModel(vendor.chatModel(id), engine)),
    providerOptions: params => ({ zhipu: { ...thinking(params), ...search(params, engine) } }),
    usesIn: passedUse,
    tailRole: () => 'user',
    list: signal => liveList(door, signal),
  };
}

/** Older models only switch it on and off; from 5.2 on it has levels, and from 5.3 on it can't be switched off. */
function thinking({ model, effort }: CallParams): JSONObject {
  const sent = effort === undefined ? undefined : closestEffort(effort, model.efforts);
  if (sent === undefined) return {};
  if (sent === 'none') return { thinking: { type: 'disabled' } };
  const levelled = model.efforts.some(known => known === 'max' || known === 'low');
  return { thinking: { type: 'enabled' }, ...(levelled && { reasoningEffort: sent }) };
}

/** The adapter knows no tools of the vendor's own: they travel as an option and become one when the body is made. */
function search({ model, webSearch }: CallParams, engine: string): JSONObject {
  if (!webSearch || !model.tools) return {};
  const count = hitsToAsk(engine, webSearch.maxResults);
  const settings = { enable: true, search_engine: engine, search_result: true, count, content_size: 'medium' };
  return { vendorSearch: settings };
}

function withSearch({ vendorSearch, ...body }: Record<string, unknown>): Record<string, unknown> {
  // There is no other word for it than `auto`: a model that is to call nothing has to be told so.
  if (vendorSearch === undefined) return Array.isArray(body.tools) ? { ...body, tool_choice: 'auto' } : body;
  // Without the word `auto` older models write the call of a tool into their text.
  return { ...body, tools: [{ type: 'web_search', web_search: vendorSearch }], tool_choice: 'auto' };
}
