import type { JSONObject } from '@ai-sdk/provider';
import { configError } from '../core/errors.ts';
import type { ModelInfo } from '../core/model.ts';
import {
  addressSetting,
  type CallParams,
  checkedBaseUrl,
  closestEffort,
  defineProvider,
  keySetting,
  plainModel,
  setting,
} from '../models/provider.ts';
import type { Fetch } from './shared/http.ts';
import { withLooseSchemas } from './shared/json-schema.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { chatModel, chatOptions, responsesOptions } from './shared/openai-dialect.ts';

/** From this version on there are Responses; ISO dates compare as texts. */
const firstResponses = '2025-03-01';

/**
 * Where deployments are asked. The undated interface has them in the body; dated versions have one address a deployment for
 * chat and one for all for Responses. The endpoint may be given with `/openai` or `/openai/v1` behind it, as portals show it.
 * `chat`: Chat Completions instead of Responses; `storeless`: its Chat Completions take `store` and `prompt_cache_key`, as dated
 * versions do not; `baseUrl`: what the packages put their paths behind.
 */
export function azureAddress(endpoint: string, apiVersion = 'v1', apiStyle?: string) {
  const root = checkedBaseUrl(endpoint, 'AZURE_OPENAI_ENDPOINT').replace(/\/openai(\/v1)?$/, '');
  const version = apiVersion.trim().toLowerCase();
  if (/^(v1|preview|latest)$/.test(version)) {
    const query: Record<string, string> = version === 'v1' ? {} : { 'api-version': version };
    const baseUrl = (_deployment: string) => `${root}/openai/v1`;
    return { chat: apiStyle === 'chat', storeless: true, baseUrl, query };
  }
  if (!/^\d{4}-\d{2}-\d{2}(-preview)?$/.test(version)) {
    throw configError('AZURE_OPENAI_API_VERSION is no version of the interface.', {
      next: 'Set it to v1, preview or a date such as 2024-10-21, or leave it unset.',
    });
  }
  const chat = apiStyle === undefined ? version < firstResponses : apiStyle === 'chat';
  return {
    chat,
    storeless: false,
    baseUrl: (deployment: string) => `${root}/openai${chat ? `/deployments/${encodeURIComponent(deployment)}` : ''}`,
    query: { 'api-version': version },
  };
}

/** Assumed of a deployment whose model nobody named. */
const assumed = { window: 128_000, maxOutput: 16_384, score: 5 };

/**
 * The deployments that the operator names, `name=model` by comma: what is `known` of OpenAI's model, under the
 * deployment's name. Those in `reasoning` think, whatever is known of them. A name that stands twice counts once.
 */
export function deploymentModels(list: string | undefined, reasoning: string | undefined, known: readonly ModelInfo[]) {
  const thinkers = new Set(entriesOf(reasoning));
  const models = new Map<string, ModelInfo>();
  for (const [name, model] of [...namedDeployments(list), ...namedDeployments(reasoning)]) {
    if (name === '' || models.has(name)) continue;
    models.set(name, deployed(name, model, thinkers.has(name), known));
  }
  return [...models.values()];
}

/** Each deployment of the list with its model, as `name=model` or the name alone where they are the same. */
const namedDeployments = (list: string | undefined): [name: string, model: string][] =>
  entriesOf(list).map(entry => {
    const [name = '', model = ''] = entry.split('=').map(text => text.trim());
    return [name, model === '' ? name : model];
  });

const entriesOf = (list: string | undefined): string[] =>
  (list ?? '')
    .split(',')
    .map(entry => entry.trim())
    .filter(entry => entry !== '');

function deployed(name: string, model: string, thinks: boolean, all: readonly ModelInfo[]): ModelInfo {
  const wanted = model.toLowerCase();
  const own = all.filter(({ provider }) => provider === 'openai');
  const known = own.find(({ id, aliases }) => id.toLowerCase() === wanted || aliases.includes(wanted));
  const undated = wanted.replace(/-\d{4}(-\d\d-\d\d)?$/, '');
  const facts = known ?? own.find(it => it.id === undated) ?? plainModel({ provider: 'azure', id: model, ...assumed });
  const efforts = thinks && facts.efforts.length === 0 ? (['low', 'medium', 'high'] as const) : facts.efforts;
  const renamed = { provider: 'azure', id: name, deployed: facts.id, name: `${facts.name} (${name})`, aliases: [] };
  return { ...facts, ...renamed, efforts, reasoning: thinks || facts.reasoning };
}

export const azure = defineProvider({
  id: 'azure',
  names: [],
  title: 'Azure OpenAI',
  docs: {
    endpoint:
      'POST {AZURE_OPENAI_ENDPOINT}/openai/v1/responses, or /openai/deployments/{name}/chat/completions?api-version=… for dated versions',
    quirks: [
      'It serves the deployments that the operator names (AZURE_OPENAI_DEPLOYMENTS, and `deployment` in the file of AZURE_MODELS_CONFIG_PATH); its interface lists the models of a region, not them.',
      "A deployment is also known by its model's name, in calls and in lists of models. What it can do, the catalogue's row of OpenAI's model tells; others that think are named in AZURE_OPENAI_REASONING_DEPLOYMENTS.",
      'The key goes into the header `api-key`.',
      "Deployments of other vendors' models (DeepSeek, Mistral, Grok…) are asked through chat unless AZURE_OPENAI_API_STYLE says otherwise, without OpenAI's own parameters.",
    ],
    source: 'https://learn.microsoft.com/azure/ai-foundry/openai/reference',
  },
  options: {
    apiKey: keySetting(
      ['AZURE_OPENAI_API_KEY'],
      'Key of an Azure OpenAI resource; with it and the endpoint its deployments can be asked.',
    ),
    endpoint: addressSetting(
      ['AZURE_OPENAI_ENDPOINT'],
      'Address of the Azure OpenAI resource, such as https://NAME.openai.azure.com.',
    ),
    apiVersion: setting(
      ['AZURE_OPENAI_API_VERSION'],
      'Version of the interface: unset or `v1` for the undated one, `preview`, or a date such as 2024-10-21 for deployment addresses.',
    ),
    deployments: setting(
      ['AZURE_OPENAI_DEPLOYMENTS'],
      'Deployments of the Azure OpenAI resource by comma, each `name=model` with the model as OpenAI calls it, or the name alone where they are the same: `prod=gpt-5.1,gpt-5-mini`.',
    ),
    reasoningDeployments: setting(
      ['AZURE_OPENAI_REASONING_DEPLOYMENTS'],
      'Names by comma of deployments on Azure that think and take an effort, where the model does not tell it.',
    ),
    apiStyle: setting(
      ['AZURE_OPENAI_API_STYLE'],
      'Which interface Azure OpenAI is asked through; unset: `responses`, but `chat` with versions from before there was one (2025-03-01).',
      { choices: ['responses', 'chat'] },
    ),
  },
  unlisted: true,
  openEnded: true,
  configured: settings => settings.apiKey !== undefined && settings.endpoint !== undefined,
  async connect(settings) {
    const { createOpenAI } = await import('@ai-sdk/openai');
    const { apiKey = '', endpoint = '', apiVersion, apiStyle } = settings;
    // The first of a name counts, as among the models.
    const models = new Map(namedDeployments(settings.deployments).toReversed());
    const modelOf = (deployment: string) => models.get(deployment) ?? deployment;
    const addresses = {
      own: azureAddress(endpoint, apiVersion, apiStyle),
      // Responses there knows little of what other vendors' models take.
      others: azureAddress(endpoint, apiVersion, apiStyle ?? 'chat'),
    };
    const addressOf = (deployment: string) => addresses[others.test(modelOf(deployment)) ? 'others' : 'own'];
    const fetch: Fetch = (input, init) => {
      const url = new URL(input instanceof Request ? input.url : input);
      for (const [name, value] of Object.entries(addresses.own.query)) url.searchParams.set(name, value);
      const headers = new Headers(init?.headers);
      headers.delete('authorization');
      headers.set('api-key', apiKey);
      return answerFetch(url, { ...init, headers });
    };
    return {
      languageModel(model) {
        const { id } = model;
        const { chat, baseUrl } = addressOf(id);
        const vendor = createOpenAI({ apiKey, baseURL: baseUrl(id), fetch });
        const asked = chat ? chatModel(vendor.chat(id), modelOf(id), model) : vendor.responses(id);
        return withLooseSchemas(asked, 'openai');
      },
      providerOptions: params => ({ openai: optionsFor(params, modelOf(params.model.id), addressOf(params.model.id)) }),
      sendsStrings: ({ id }) => addressOf(id).chat,
      tailRole: () => 'system',
    };
  },
  models: (settings, known) => deploymentModels(settings.deployments, settings.reasoningDeployments, known),
});

/** Models of other vendors, by the names under which Azure deploys them. */
const others =
  /^(?:deepseek|mi(?:ni)?stral|codestral|(?:meta-)?llama|phi|grok|kimi|cohere|command|qwen|jamba|jais|mai|minimax|glm|gpt-oss)/i;

/** Other vendors' models refuse what is OpenAI's alone: the key of the cache, and to store nothing. */
function optionsFor(params: CallParams, model: string, address: ReturnType<typeof azureAddress>): JSONObject {
  if (!others.test(model)) return address.chat ? chatOptions(params, address.storeless) : responsesOptions(params);
  const effort = closestEffort(params.effort, params.model.efforts);
  return { systemMessageMode: 'system', ...(effort !== undefined && effort !== 'none' && { reasoningEffort: effort }) };
}
