import { loadCatalogue, onDay } from '../src/models/catalogue/model-sources.ts';
import { overlayFacts, readModelsDev } from '../src/models/catalogue/models-dev.ts';
import { feeRate } from '../src/models/fees.ts';
import { cell, code, table } from './generate/markdown.ts';

interface Rates {
  in: number;
  out: number;
  cacheRead?: number;
  cacheWrite?: number;
}

/** What the report and the page say of one fact sheet. */
export interface Sheet {
  provider: string;
  id: string;
  context?: number | null;
  usdPerMTok?: (Rates & { tiers?: ({ above: number } & Rates)[] }) | null;
  priceFrom?: { date: string; usdPerMTok: Rates };
  released?: string | null;
  deprecated?: string;
  retired?: string;
  replacedBy?: string;
  status?: string | null;
  source?: string;
  checked?: string;
}

/** Days after which somebody has to look at a row again. */
const maxAgeDays = 90;

const dayMs = 86_400_000;

/** What somebody has to look at, by provider. What a vendor retired does not change any more. */
export function reportOf(facts: readonly Sheet[], today: string): { text: string; unsourced: string[]; old: string[] } {
  const name = ({ provider, id }: Sheet) => `${provider}:${id}`;
  const live = facts.filter(({ retired }) => retired === undefined || retired > today);
  const unsourced = facts.filter(({ source }) => source === undefined).map(name);
  const isOld = ({ checked = '' }: Sheet) => Date.parse(today) - Date.parse(checked) > maxAgeDays * dayMs;
  const old = live.filter(fact => fact.source !== undefined && isOld(fact)).map(name);
  const part = (title: string, names: readonly string[]) => [
    `${title}: ${names.length}`,
    ...names.map(each => `  ${each}`),
  ];
  const text = [
    `${facts.length} rows, ${facts.length - live.length} of them retired by ${today}`,
    ...part('Without a source', unsourced),
    ...part(`With a source that was read more than ${maxAgeDays} days ago`, old),
  ].join('\n');
  return { text, unsourced, old };
}

/**
 * What models.dev says otherwise, one line each for the body of an issue: models that are new or gone, windows, prices and ends.
 * `api` is the text of its api.json.
 */
export function changesSince(api: string, today: string): string[] {
  const theirs = readModelsDev(JSON.parse(api));
  if (!theirs) throw new Error('This is no api.json of models.dev.');
  const ours = onDay(loadCatalogue(), today, new Set(Object.keys(theirs)));
  const lines = Object.entries(theirs).flatMap(([provider, rows]) => {
    const own = ours.filter(model => model.provider === provider);
    const gone = own.filter(({ id, status }) => status === 'active' && !rows.some(row => row.id === id));
    const seen = rows.flatMap(row => {
      const model = own.find(({ id }) => id === row.id);
      if (!model) return [`new: ${row.window} tokens, ${dollarsOf(row.price)}`].map(what => [row.id, what]);
      const [renewed] = overlayFacts([model], { [provider]: [row] });
      const pairs = [
        ['window', model.window, renewed?.window],
        ['price', dollarsOf(model.price), dollarsOf(renewed?.price)],
        ['deprecated', model.status !== 'active', row.status !== 'active'],
      ];
      return pairs.filter(([, a, b]) => a !== b).map(([what, a, b]) => [row.id, `${what}: ${a} → ${b}`]);
    });
    return [...seen, ...gone.map(({ id }) => [id, 'gone'])].map(([id, what]) => `- [ ] ${provider}:${id}: ${what}`);
  });
  return lines.sort();
}

function dollarsOf(rates: Rates | undefined): string {
  return rates ? `$${rates.in} in, $${rates.out} out` : 'no price';
}

/** What of a vendor's bill is not among the prices, by our id of the provider. */
const leftOut: Readonly<Record<string, string>> = {
  anthropic: 'Surcharges for a region.',
  deepseek: 'The half price outside of peak hours: calls count at the price of peak hours.',
  google: 'The free searches of a month are not taken off. Audio and video count as text.',
  groq: 'Tools that its own systems use.',
  minimax: 'Nothing is known to be missing: no search and no cache storage is used.',
  moonshot: 'Nothing: files are read and kept free of charge.',
  ollama: "Subscriptions of Ollama's cloud have no price per token. Own machines are free.",
  openai: 'Surcharges for a region, and priority tiers, which are not used.',
  openrouter: 'The price of each host: what OpenRouter says a call cost counts, searches included.',
  xai: 'What Grok itself uses in addition to web searches; what xAI says a call cost counts.',
  zhipu: 'Searches with engines of BigModel, which are sold in yuan.',
};

/** docs/reference/models.md: the lives and prices of all models, and what of each vendor has no price. */
export function describeModels(facts: readonly Sheet[]): string {
  const providers = [...new Set(facts.map(({ provider }) => provider))].sort();
  const fees = providers.map(provider => [
    code(provider),
    perThousand(provider),
    facts.some(fact => fact.provider === provider && fact.usdPerMTok?.cacheWrite) ? 'priced' : 'as other input',
    storage(provider),
    cell(leftOut[provider] ?? 'Unknown.'),
  ]);
  const sections = providers.map(provider => {
    const rows = facts.filter(fact => fact.provider === provider).map(rowOf);
    return `## ${provider}\n\n${table(['model', 'window', 'input', 'output', 'cache read', 'life', 'source'], rows)}`;
  });
  return `${notice}

# Models

What is known of the vendors' models: prices in US dollars for a million tokens, and the days on which the vendor released a
model, advises against it, and retires it. A retired model is not offered or chosen, and the error that its name gets says what
took its place. A model that its vendor still lists on that day keeps working, with a warning.

Each row has a source, and the day on which it was looked at. \`npm run catalogue\` fails without a source, and lists the rows that
nobody looked at for ${maxAgeDays} days.

## Prices in addition to tokens

${table(['provider', 'search of the web', 'cache writes', 'cache storage', 'not priced'], fees)}

${sections.join('\n\n')}
`;
}

const notice =
  '<!-- Generated by scripts/catalogue.ts ("npm run catalogue") from scripts/data/model-facts.jsonl; edits here are overwritten. -->';

/** Rates of searches and storage hold for all models of a vendor, or for some: the range counts. */
function perThousand(provider: string): string {
  const engines = ['', 'gemini-2', 'search-prime'];
  const usd = new Set(engines.flatMap(engine => feeRate(provider, 'web_search', engine) ?? []));
  if (usd.size === 0) return provider === 'openrouter' ? 'in the cost that it names' : 'none used';
  const dollars = [...usd].map(rate => rate * 1_000).sort((a, b) => a - b);
  return `$${dollars.join(' or ')} per 1,000`;
}

function storage(provider: string): string {
  const rates = ['flash', 'pro'].flatMap(kind => feeRate(provider, 'cache_storage', kind) ?? []);
  return rates.length === 0
    ? 'none'
    : `$${rates.map(rate => rate * 1_000_000).join(' or ')} per million tokens and hour`;
}

function rowOf(fact: Sheet): string[] {
  const { id, context, usdPerMTok: price, priceFrom, source, checked } = fact;
  const long =
    price?.tiers?.map(({ above, ...rates }) => `; above ${above.toLocaleString('en')}: ${rates.in}`).join('') ?? '';
  const longOut =
    price?.tiers?.map(({ above, ...rates }) => `; above ${above.toLocaleString('en')}: ${rates.out}`).join('') ?? '';
  const later = (rate: 'in' | 'out') => (priceFrom ? `; from ${priceFrom.date}: ${priceFrom.usdPerMTok[rate]}` : '');
  return [
    code(id),
    context ? context.toLocaleString('en') : '',
    price ? `${price.in}${long}${later('in')}` : 'not priced',
    price ? `${price.out}${longOut}${later('out')}` : 'not priced',
    price?.cacheRead ? `${price.cacheRead}` : '',
    lifeText(fact),
    source ? `[${checked}](${source})` : 'none',
  ];
}

function lifeText({ released, deprecated, retired, replacedBy, status }: Sheet): string {
  const steps = [
    released ? `released ${released}` : '',
    deprecated ? `deprecated ${deprecated}` : status === 'deprecated' && !retired ? 'deprecated' : '',
    retired ? `retired ${retired}` : '',
    replacedBy ? `replaced by ${code(replacedBy)}` : '',
  ];
  return steps.filter(Boolean).join(', ');
}
