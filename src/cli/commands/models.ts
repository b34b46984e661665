import type { Product } from '../../app/compose-product.ts';
import { inputError } from '../../core/errors.ts';
import { type JsonObject, jsonOf } from '../../core/json.ts';
import type { ModelInfo } from '../../core/model.ts';
import { didYouMean } from '../../core/text.ts';
import { type CommandContext, defineCommand, flag, isOn, noneOf, textFlag } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';

type Provider = Awaited<ReturnType<Product['models']['providers']>>[number];

export const models = defineCommand({
  name: 'models',
  group: 'Models',
  summary: 'List available models by provider',
  usage: '[refresh]',
  words: ['refresh'],
  flags: [flag('provider <id>', 'Show only this provider'), flag('all', 'Include providers without a key')],
  examples: [
    ['polylogue models', 'Models you can ask now'],
    ['polylogue models --all', 'Include providers without a key'],
    ['polylogue models --provider openai --json', 'Print one provider as JSON'],
    ['polylogue models refresh', 'Fetch context windows and prices from models.dev'],
  ],
  run: context =>
    openProduct(context, async ({ product, signal }) => {
      const [word] = context.args;
      if (word === 'refresh') {
        if (textFlag(context.flags, 'provider') !== undefined)
          throw inputError('"polylogue models refresh" fetches the facts about all providers at once.', {
            next: 'Leave --provider out.',
          });
        return refresh(context, product, signal);
      }
      if (word !== undefined)
        throw inputError(`Unknown argument "${word}".`, {
          next: `${didYouMean(word, ['refresh'])}Run "polylogue models" or "polylogue models refresh".`,
        });
      const all = await product.models.providers({ fresh: true });
      const ids = all.map(provider => provider.id);
      const id = textFlag(context.flags, 'provider');
      const chosen = id === undefined ? all : all.filter(provider => provider.id === id);
      if (id !== undefined && chosen.length === 0) throw noneOf('provider', id, ids);
      // What needs no key and may not be asked here is nobody's concern.
      const isWanted = isOn(context.flags, 'all') || id !== undefined;
      const shown = chosen.filter(
        ({ configured, env, models: list }) => isWanted || (configured && (env.length > 0 || list.length > 0)),
      );
      const others = chosen.filter(provider => !provider.configured && provider.setUp !== '');
      context.out.document({ status: 'success', providers: shown.map(documentOf) });
      print(context, shown, others);
    }),
});

/** What there was stays when it fails; the error says why, and nothing is written. */
async function refresh({ out }: CommandContext, { models }: Product, signal: AbortSignal): Promise<void> {
  out.status('asking models.dev …');
  const { changed, models: count, providers } = await models.refresh(signal);
  out.status('');
  out.document({ status: 'success', changed, models: count, providers: [...providers] });
  const how = changed ? 'Updated model data' : 'Model data is up to date';
  out.line(`${how}: ${count} models, ${providers.length} providers.`);
}

function documentOf({ id, title, configured, env, onlyByPrefix, models: list, listing }: Provider): JsonObject {
  const facts = { id, title, configured, env, only_by_prefix: onlyByPrefix };
  return {
    ...facts,
    listing: listing && { models: listing.models, age_seconds: listing.ageSeconds, failure: listing.failure },
    models: list.map(({ maxOutput: max_output, ...model }) => {
      const { id, aliases, window, score, reasoning, input, price } = model;
      return jsonOf({ id, aliases, window, max_output, score, reasoning, input, price });
    }),
  };
}

function print({ out }: CommandContext, shown: readonly Provider[], others: readonly Provider[]): void {
  for (const { id, title, configured, models: list, listing, onlyByPrefix, env, advice } of shown) {
    const missing = env.length > 0 ? ', no key' : ', not set up';
    out.line(out.style('bold', `${title} (${id})${configured ? '' : missing}`));
    if (listing) out.line(out.style('dim', `  ${listingText(listing)}`));
    for (const model of list.toSorted((a, b) => b.score - a.score || a.id.localeCompare(b.id)))
      out.line(onlyByPrefix ? `  ${id}:${model.id}` : row(model));
    const isBarred = list.length === 0 && (configured || env.length > 0);
    out.line(isBarred ? `  no model that may be used. ${advice}\n` : '');
  }
  const ready = shown.filter(({ configured }) => configured);
  if (ready.length === 0) {
    out.line('No provider is configured. Set an API key, or add --offline for built-in test models.');
  } else if (ready.every(({ onlyByPrefix }) => onlyByPrefix))
    out.line('These models answer only when named. To use "auto", set an API key or add --offline.');
  for (const { title, setUp } of others) out.line(out.style('dim', `${title}: ${setUp}`));
}

/** Whether what stands below is what the vendor itself says, and since when. */
function listingText({ models: count, ageSeconds, failure }: NonNullable<Provider['listing']>): string {
  const minutes = ageSeconds === undefined ? undefined : Math.round(ageSeconds / 60);
  const age = minutes === undefined ? '' : minutes < 120 ? `${minutes} min old` : `${Math.round(minutes / 60)} h old`;
  if (failure === undefined) return `live list of ${count} models, ${minutes === 0 ? 'of now' : age}`;
  return age === '' ? `no live list: ${failure}` : `list of ${count} models, ${age}: ${failure}`;
}

function row({ id, aliases, window, price }: ModelInfo): string {
  const size = window >= 1_000_000 ? `${window / 1_000_000}M` : `${Math.round(window / 1_000)}k`;
  const cost = price ? `${price.in}/${price.out} USD` : '';
  return `  ${id.padEnd(34)} ${size.padStart(6)}  ${cost.padEnd(14)} ${aliases.join(', ')}`.trimEnd();
}
