import type { JSONObject } from '@ai-sdk/provider';
import { configError } from '../core/errors.ts';
import { closestEffort } from '../models/effort.ts';
import { checkedBaseUrl } from '../models/extras/endpoint.ts';
import { toldWhole } from '../models/extras/openrouter-stream.ts';
import { openRouterSearchTools } from '../models/extras/search/openrouter-search.ts';
import { countedSearches } from '../models/fees/counted-uses.ts';
import { type CallParams, type Connection, defineProvider, type ProviderSettings } from '../models/provider.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/plain-answer.ts';

const ownBaseUrl = 'https://openrouter.ai/api/v1';
/** The least that vendors behind OpenRouter take for thinking, and what an answer needs beside it. */
const smallestBudget = 1_024;
const smallestAnswer = 1_000;
const group = 'Providers';

export const openrouter = defineProvider({
  id: 'openrouter',
  names: ['r'],
  title: 'OpenRouter',
  docs: {
    endpoint: 'POST https://openrouter.ai/api/v1/chat/completions',
    quirks: [
      'Models are named `vendor/model`, with a route behind a colon where one is wanted: `:free`, `:nitro`, `:floor`, `:online`, `:thinking`.',
      'What a call cost is what OpenRouter says it cost.',
      'A name that is not in its list is passed on as typed, with a warning.',
    ],
    source: 'https://openrouter.ai/docs/api-reference/overview',
  },
  options: {
    apiKey: {
      env: ['OPENROUTER_API_KEY'],
      type: 'string',
      doc: 'Key of OpenRouter; with it the models of many vendors can be asked, as `vendor/model`.',
      group,
      secret: true,
    },
    baseUrl: {
      env: ['OPENROUTER_BASE_URL'],
      type: 'url',
      doc: 'Whole base address, version path included, of a server that speaks like OpenRouter; unset: OpenRouter itself.',
      group,
      operatorOnly: true,
    },
    referer: {
      env: ['OPENROUTER_REFERER'],
      type: 'string',
      doc: 'Address that OpenRouter shows as the app that asks; unset: none.',
      group,
    },
    appTitle: {
      env: ['OPENROUTER_TITLE'],
      type: 'string',
      doc: 'Name that OpenRouter shows as the app that asks; unset: none.',
      group,
    },
  },
  configured: settings => settings.apiKey !== undefined,
  connect,
  // Its search is a tool, for models that call tools.
  searches: model => model.tools,
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const headers = {
    ...header('HTTP-Referer', settings.referer, 'OPENROUTER_REFERER'),
    ...header('X-Title', settings.appTitle, 'OPENROUTER_TITLE'),
  };
  // Both are always given: what is left out, the package would take from the environment.
  const apiKey = settings.apiKey ?? '';
  const baseUrl = checkedBaseUrl(settings.baseUrl ?? ownBaseUrl, 'OPENROUTER_BASE_URL');
  const { createOpenRouter } = await import('@openrouter/ai-sdk-provider');
  const vendor = createOpenRouter({ apiKey, baseURL: baseUrl, headers, fetch: answerFetch });
  return {
    languageModel: ({ id }) => toldWhole(vendor.chat(id, { usage: { include: true } })),
    providerOptions: params => ({ openrouter: vendorOptions(params) }),
    vendorTools: openRouterSearchTools,
    usesIn: countedSearches,
    // Taken by the vendors that want marks (Anthropic, Gemini, Qwen), left out on the way to the others.
    cacheMark: { openrouter: { cacheControl: { type: 'ephemeral' } } },
    tailRole: () => 'user',
    list: signal =>
      liveList({ provider: 'openrouter', baseUrl, headers: { authorization: `Bearer ${apiKey}` } }, signal),
  };
}

/** Headers carry Latin letters only; anything else would fail each call with a riddle. */
function header(name: string, value: string | undefined, envName: string): Record<string, string> {
  if (value === undefined) return {};
  if (/^[\x20-\x7e]+$/.test(value)) return { [name]: value };
  throw configError(`${envName} has characters that no header can carry.`, {
    next: `Set ${envName} to plain letters, digits and signs (ASCII), or leave it unset.`,
  });
}

function vendorOptions(params: CallParams): JSONObject {
  const reasoning = reasoningOption(params);
  return {
    ...(reasoning === undefined ? {} : { reasoning }),
    // Keeps a thread at the vendor that has its beginning in the cache.
    ...(params.cacheKey === undefined ? {} : { session_id: params.cacheKey }),
  };
}

/** A budget where the model takes one, else the nearest effort that it knows. */
function reasoningOption({ model, effort, thinkingBudget, maxOutputTokens }: CallParams): JSONObject | undefined {
  if (thinkingBudget === 0) return { enabled: false };
  if (thinkingBudget !== undefined) {
    const most = maxOutputTokens - smallestAnswer;
    return most < smallestBudget ? undefined : { max_tokens: Math.min(most, Math.max(smallestBudget, thinkingBudget)) };
  }
  const sent = effort === undefined ? undefined : closestEffort(effort, model.efforts);
  return sent === undefined ? undefined : { effort: sent };
}
