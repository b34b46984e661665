import type * as sdk from '@ai-sdk/provider';
import { recordIn, recordsIn } from '../core/json.ts';
import type { ModelInfo } from '../core/model.ts';
import { countedSearches } from '../models/fees.ts';
import { budgetFor, type CallParams, keyedProvider } from '../models/provider.ts';
import { askJson, type Fetch, reportedCount, requestBody, versionedFetch } from './shared/http.ts';
import { liveList } from './shared/list-models.ts';
import { answerFetch } from './shared/non-streaming.ts';
import { adjustedModel, mappedParts, type Part, searchTool } from './shared/stream-transforms.ts';
import { fittedBudget, smallestAnswer, switchedThinking, withoutForcedChoice } from './shared/thinking.ts';

/** For the vendor's own search. */
const tooOld = /^claude-(?:2|instant|3-(?:opus|sonnet|haiku)-|3-5-sonnet-20240620)/;

/** The plain search: the newer ones run code at the vendor to filter what they found. */
const search = searchTool('anthropic.web_search_20250305', ({ maxRounds }) => ({ maxUses: maxRounds }));

/** The model with what the package leaves in corners: how old a page is, and the words that were quoted of it. */
const withQuotes = (model: sdk.LanguageModelV4): sdk.LanguageModelV4 =>
  mappedParts(model, () => part => {
    if (part.type === 'source') return [dated(part)];
    return part.type === 'text-end' ? [part, ...quotes(part)] : [part];
  });

type Source = Extract<Part, { type: 'source' }>;

function dated(part: Source): Source {
  const age = part.providerMetadata?.anthropic?.pageAge;
  return typeof age === 'string' ? { ...part, providerMetadata: { anthropic: { date: age } } } : part;
}

const quotes = ({ id, providerMetadata }: Extract<Part, { type: 'text-end' }>): Source[] =>
  recordsIn(providerMetadata?.anthropic?.citations).flatMap((citation, index): Source[] => {
    if (citation.type !== 'web_search_result_location') return [];
    const { url, title, cited_text: snippet } = citation;
    if (typeof url !== 'string' || typeof snippet !== 'string') return [];
    const page = { id: `${id}-${index}`, url, ...(typeof title === 'string' && { title }) };
    return [{ type: 'source', sourceType: 'url', ...page, providerMetadata: { anthropic: { snippet } } }];
  });

/** The vendor refuses smaller budgets. */
const smallestBudget = 1024;

export const anthropic = keyedProvider({
  id: 'anthropic',
  names: ['a'],
  title: 'Anthropic',
  docs: {
    endpoint: 'POST https://api.anthropic.com/v1/messages',
    quirks: [
      'Thinking is a budget in tokens for older models and an effort for newer ones; what a model takes, the catalogue says.',
      'The ends of what stays the same in a thread are marked for its cache, four at the most.',
      'It counts tokens itself (`/messages/count_tokens`), which decides where an estimate comes near the window.',
    ],
    source: 'https://platform.claude.com/docs/en/api/messages',
  },
  key: [['ANTHROPIC_API_KEY'], 'Key of the Anthropic API; with it the Claude models can be asked.'],
  address: [
    ['ANTHROPIC_BASE_URL'],
    'Base address of a server that speaks like Anthropic, with or without its version path; unset: Anthropic itself.',
  ],
  baseUrl: 'https://api.anthropic.com/v1',
  readsDocuments: true,
  headers: ({ apiKey = '' }) => ({ 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }),
  async connect(access) {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    const { apiKey, baseUrl, headers } = access;
    const address = versionedFetch(baseUrl, answerFetch);
    const vendor = createAnthropic({ apiKey, baseURL: baseUrl, fetch: address.fetch });
    return {
      languageModel: model =>
        withQuotes(
          withRoomForThinking(withLooseThoughts(withFreeChoice(vendor.messages(model.id), model), model), model),
        ),
      providerOptions: params => ({ anthropic: thinkingOptions(params) }),
      vendorTools: search,
      usesIn: countedSearches,
      cacheMark: { anthropic: { cacheControl: { type: 'ephemeral' } } },
      imageLimits: ({ window }) => ({ max: window <= 200_000 ? 100 : 600, bytes: 5_000_000, allBytes: 30_000_000 }),
      list: signal => liveList({ ...access, fetch: address.fetch }, signal),
      remark: async () => address.remark('ANTHROPIC_BASE_URL'),
      async countTokens({ id }, call) {
        const make = (fetch: Fetch) => createAnthropic({ apiKey, baseURL: baseUrl, fetch }).messages(id);
        // The counting method knows none of the vendor's own tools, the only ones there are here.
        const { model, system, messages } = await requestBody(make, call);
        const url = `${address.baseUrl()}/messages/count_tokens`;
        const body = { model, system, messages };
        const answer = await askJson({ url, headers, body, provider: 'anthropic', model: id }, call.abortSignal);
        return reportedCount(answer, 'input_tokens');
      },
    };
  },
  searches: ({ id }) => !tooOld.test(id),
});

/**
 * Models with a budget take one in tokens; newer ones weigh for themselves and take an effort. These keep their thoughts to
 * themselves unless asked, and a model that thinks for minutes without a sign of life would run into the time limits.
 */
function thinkingOptions(params: CallParams): sdk.JSONObject {
  const { model, effort, thinkingBudget } = params;
  const { thinkingBudget: range } = model;
  if (!range)
    return switchedThinking(params, sent => ({ thinking: { type: 'adaptive', display: 'summarized' }, effort: sent }));
  const wanted = thinkingBudget ?? (effort === undefined || effort === 'none' ? 0 : budgetFor(effort, range));
  const least = Math.max(range.min, smallestBudget);
  const budgetTokens = wanted > 0 ? fittedBudget(wanted, { ...range, min: least }, model.maxOutput) : undefined;
  if (budgetTokens !== undefined) return { thinking: { type: 'enabled', budgetTokens } };
  return effort === 'none' ? { thinking: { type: 'disabled' } } : {};
}

/** Models that refuse a thought whose conversation is another one by now, with a result of a tool that was cut since. */
const bindsThoughts = /^claude-(?:(?:opus|sonnet|haiku)-(?:5-[5-9]|[6-9])|fable-(?:5-[1-9]|[6-9]))/;

/** They leave such thoughts out where they are told to. */
const withLooseThoughts = (vendorModel: sdk.LanguageModelV4, { id }: ModelInfo): sdk.LanguageModelV4 =>
  adjustedModel(vendorModel, options => {
    const { thinking } = options.providerOptions?.anthropic ?? {};
    const { type = 'adaptive' } = recordIn(thinking);
    const thought = ({ role, content }: sdk.LanguageModelV4Message) =>
      role === 'assistant' && content.some(part => part.type === 'reasoning');
    if (!bindsThoughts.test(id) || type !== 'adaptive' || !options.prompt.some(thought)) return options;
    const loose = { ...recordIn(thinking), blockBinding: { prefixMismatchBehavior: 'drop_block' } };
    const anthropic = { ...options.providerOptions?.anthropic, thinking: loose };
    return { ...options, providerOptions: { ...options.providerOptions, anthropic } };
  });

/** A model that thinks, whether it was asked to or always does, is not forced to call a tool. */
const withFreeChoice = (vendorModel: sdk.LanguageModelV4, { reasoning, efforts, thinkingBudget }: ModelInfo) =>
  withoutForcedChoice(vendorModel, ({ providerOptions }) => {
    const { type } = recordIn(providerOptions?.anthropic?.thinking);
    const always = reasoning && !thinkingBudget && !efforts.includes('none');
    return type === undefined ? always : type !== 'disabled';
  });

/**
 * The package sends answer + budget as `max_tokens`, and caps the sum only for the ids that it knows. This keeps it between
 * budget + 1,000 and what the model may write, for every id.
 */
const withRoomForThinking = (vendorModel: sdk.LanguageModelV4, model: ModelInfo): sdk.LanguageModelV4 =>
  adjustedModel(vendorModel, options => {
    const { budgetTokens: budget } = recordIn(options.providerOptions?.anthropic?.thinking);
    if (typeof budget !== 'number') return options;
    const max = Math.max(smallestAnswer, model.maxOutput - budget);
    const answer = Math.max(smallestAnswer, options.maxOutputTokens ?? max);
    return { ...options, maxOutputTokens: Math.min(answer, max) };
  });
