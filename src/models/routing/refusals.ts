import { AppError, configError, inputError, unknownProvider } from '../../core/errors.ts';
import type { ModelInfo } from '../../core/model.ts';
import { didYouMean } from '../../core/text.ts';
import { assumed, plainModel } from '../provider.ts';
import { type EligibleModels, interpretationsOf, nearestModels } from './eligible-models.ts';
import { knownSuffixes, makerSlugs, type Suffixed, sameModel, splitAsk, splitSuffix } from './names.ts';
import type { Restriction, RosterProvider } from './roster.ts';
import { isOffline, isRestriction, prefixOf, priorityOf, settingOf } from './roster.ts';

const suggestions = 3;

/** Whether anything at all could be chosen without being named, if no list forbade it. */
export const hasProvider = ({ roster, policy }: EligibleModels): boolean =>
  roster.providers.some(
    provider =>
      provider.configured && (policy.offline ? isOffline(provider.id) || provider.local : !provider.onlyByName),
  );

/** What still has to be set before a provider can be asked; undefined where no setting makes it usable. */
const missingAt = (eligible: EligibleModels, id: string): string | undefined =>
  settingOf(id) && (eligible.provider(id)?.missing ?? settingOf(id));

function noProviderError(eligible: EligibleModels): AppError {
  const ids = eligible.roster.providers.map(provider => provider.id).toSorted((a, b) => priorityOf(a) - priorityOf(b));
  const settings = ids.flatMap(id => missingAt(eligible, id) ?? []);
  const set = settings.length > 0 ? `Set one of ${settings.join(', ')}` : 'Configure a provider';
  const next = `${set} in the environment or in .env of the data directory, and start again. To try Polylogue without a key, add --offline (OFFLINE=true).`;
  return configError('No model provider is configured.', { class: 'no_provider', next });
}

const notFound = (message: string, kind: string, next: string, data: Record<string, unknown> = {}): AppError =>
  new AppError('input', message, { code: 'MODEL_NOT_FOUND', class: kind, next, data });

/** Nothing known has this name. Names the three nearest that would work. */
export function unknownModelError(eligible: EligibleModels, name: string, provider?: string): AppError {
  const pool = eligible.open.filter(model => provider === undefined || model.provider === provider);
  const nearest = nearestModels(name, pool.length > 0 ? pool : eligible.open, suggestions);
  const next =
    nearest.length > 0
      ? `Use ${oneOf(nearest)}, or "auto".`
      : 'Use "auto", or call "listmodels" to see what is available.';
  const message = `Unknown model "${name}"${provider ? ` for provider ${provider}` : ''}.`;
  const unlisted = eligible.policy.offline ? '' : ` If ${provider} serves it, set ALLOW_UNKNOWN_MODELS=on.`;
  return notFound(message, 'unknown', provider ? next + unlisted : next, { suggestions: nearest });
}

/** The model exists, but none of its rows may be used. */
export function refusedError(eligible: EligibleModels, name: string, rows: readonly ModelInfo[]): AppError {
  const refused = rows.map(model => ({ model, why: eligible.refusal(model) }));
  const gone = refused.find(({ why }) => why === 'retired');
  const twins = eligible.roster.models.filter(model => !gone && rows.some(row => sameModel(row, model)));
  for (const model of [...rows, ...twins]) {
    const why = eligible.refusal(model);
    if (isRestriction(why)) return restrictedError(eligible, name, model, why);
  }
  if (!hasProvider(eligible)) return noProviderError(eligible);
  if (gone) return retiredError(eligible, name, gone.model);
  const [first] = refused.filter(({ why }) => why === 'no_key');
  if (first) return unconfiguredError(eligible, name, first.model.provider, rows);
  const message = `"${name}" is a model of ${rows[0]?.provider}, which this installation does not support.`;
  return notFound(message, 'no_provider', useOpen(eligible));
}

/** The provider that was named, or that alone serves the model, has no key. Who else serves the model is said, if anyone does. */
export function unconfiguredError(
  eligible: EligibleModels,
  name: string,
  provider: string,
  rows: readonly ModelInfo[] = [],
): AppError {
  if (!hasProvider(eligible)) return noProviderError(eligible);
  const setting = settingOf(provider);
  const twin =
    eligible.open.find(model => rows.some(row => sameModel(row, model))) ?? offeredByAggregator(eligible, rows);
  const other = twin ? `"${twin.provider}:${twin.id}", the same model elsewhere` : bestOpen(eligible);
  const missing = missingAt(eligible, provider);
  const next = `${missing ? `Set ${missing}` : `Configure ${provider}`} in the server's environment, or use another model: ${other}.`;
  const data = { setting, suggestions: twin && [`${twin.provider}:${twin.id}`] };
  return notFound(`"${name}" needs ${provider}, which is not configured.`, 'no_key', next, data);
}

/** Its vendor shut the model down. */
function retiredError(eligible: EligibleModels, name: string, model: ModelInfo): AppError {
  const { provider, id, life } = model;
  const successor = successorOf(eligible, model);
  const open = eligible.open.filter(other => other === successor || other.status === 'active');
  const others = successor && open.includes(successor) ? [successor.id] : nearestModels(id, open, suggestions);
  const replaced = successor ? `; "${successor.id}" takes its place` : '';
  const message = `"${name}" was retired by ${provider} on ${life?.retired}${replaced}.`;
  const next = others.length > 0 ? `Use ${oneOf(others)}, or "auto".` : 'Use "auto".';
  return notFound(message, 'retired', next, { suggestions: others });
}

/** What took a model's place, and the place of that one, to the last. */
export function successorOf({ roster }: EligibleModels, model: ModelInfo): ModelInfo | undefined {
  const line = [model];
  for (const { provider, life } of line) {
    const next = roster.models.find(other => other.provider === provider && other.id === life?.replacedBy);
    if (next && !line.includes(next)) line.push(next);
  }
  return line.at(-1) === model ? undefined : line.at(-1);
}

const decisions: Record<Restriction, (provider: string) => string> = {
  offline: () => 'the server runs with --offline',
  not_local: () => 'LOCAL_ONLY allows only models on this machine or network',
  denied: () => 'DENIED_MODELS excludes it',
  not_allowed: provider => `it is not in the allow-list for ${provider}`,
};

function restrictedError(eligible: EligibleModels, name: string, model: ModelInfo, why: Restriction): AppError {
  const message = `"${name}" may not be used: ${decisions[why](model.provider)}.`;
  return notFound(message, 'restricted', useOpen(eligible), { reason: why, best: eligible.open[0]?.id });
}

/** Models are there, but the operator's lists leave none for an automatic choice. */
export function nothingAllowedError(eligible: EligibleModels): AppError {
  if (!hasProvider(eligible)) return noProviderError(eligible);
  if (eligible.avoids || eligible.request.from) {
    const next = eligible.policy.offline
      ? 'Offline models only echo their input. Set a provider key and start without --offline.'
      : 'Set the key of a provider whose models support it, or name a model.';
    const { lacks } = eligible.request;
    const message = `No allowed model ${lacks === undefined ? 'can do this' : `is known to ${lacks}`}.`;
    return notFound(message, 'unmet_needs', next);
  }
  if (eligible.roster.models.some(model => isRestriction(eligible.refusal(model)))) {
    const next = 'Ask the operator to widen the allow-list, the deny list or the local-only rule.';
    return notFound('The allow-lists, DENIED_MODELS or LOCAL_ONLY exclude every model.', 'restricted', next);
  }
  const next = 'Name a model as "provider:model", or run "polylogue doctor" to check the provider.';
  return notFound('No configured provider lists a usable model.', 'unknown', next);
}

export function noVisionError(eligible: EligibleModels): AppError {
  const next = `Send the call without images, or set the key of a provider whose models see; ${bestOpen(eligible)} reads text.`;
  return notFound('No allowed model accepts images.', 'unmet_needs', next);
}

export const unknownSuffixError = (name: string, suffix: string): AppError =>
  inputError(`Unknown suffix ":${suffix}" in "${name}:${suffix}".`, {
    next: `Valid suffixes: ${knownSuffixes.join(', ')}.`,
    validationErrors: [{ field: 'model', error: `unknown suffix ":${suffix}"`, allowed: [...knownSuffixes] }],
  });

export const malformedNameError = (why: string): AppError =>
  inputError(`Invalid model name: it ${why}.`, {
    next: 'Use "name", "provider:name" or "auto", optionally with a suffix such as ":high".',
    validationErrors: [{ field: 'model', error: why }],
  });

export function unknownProviderError(eligible: EligibleModels, name: string): AppError {
  if (!hasProvider(eligible)) return noProviderError(eligible);
  const { providers } = eligible.roster;
  const ids = providers.filter(provider => provider.configured).map(({ id }) => id);
  const others = providers.flatMap(({ id, configured }) => {
    const missing = missingAt(eligible, id);
    return configured ? [] : [missing ? `${id} (${missing})` : id];
  });
  const more = others.length > 0 ? ` Not configured are ${others.join(', ')}.` : '';
  const use = `Configured providers: ${ids.join(', ')}. Use one of them, or a model name without a provider.${more}`;
  return unknownProvider(name, `${didYouMean(name, ids)}${use}`);
}

const bestOpen = ({ open }: EligibleModels): string => (open[0] ? `"${open[0].id}"` : '"auto"');

const useOpen = (eligible: EligibleModels): string =>
  eligible.open[0]
    ? `Use "${eligible.open[0].id}", the best one that may be used, or "auto".`
    : 'Ask the operator for a model that may be used.';

function oneOf(names: readonly string[]): string {
  const quoted = names.map(name => `"${name}"`);
  return quoted.length > 1 ? `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}` : `${quoted[0]}`;
}

/** What stands behind the colon of models that come in several sizes: `8b`, `8x7b-instruct-q4_K_M`, `latest`, `cloud`. */
const tag = /^(?:latest|cloud|e?\d+(?:x\d+)?(?:\.\d+)?[bm](?:[-.].*)?|.*-cloud|.*q\d(?:_\w+)?)$/i;

/**
 * What a name that nothing bears puts before its colon, when that can only be meant for a provider: what follows is a model
 * that we know, or is neither a suffix nor the tag of a local model.
 */
export function unknownProviderPrefix(eligible: EligibleModels, name: string): string | undefined {
  const prefix = prefixOf(eligible, name);
  if (prefix === undefined) return undefined;
  const rest = name.slice(prefix.length + 1).trim();
  if (rest === '') return undefined;
  if (interpretationsOf(eligible, rest).next().done === false) return prefix;
  const isModel = /\d/.test(prefix) || tag.test(rest) || splitSuffix(name)?.ask !== undefined;
  return isModel ? undefined : prefix;
}

/** An id nobody here knows, sent to the provider as typed; `warning` is empty where all that matters of it is known. */
export type Passed = { model: ModelInfo; suffix?: Suffixed | undefined; warning: string };

/** The reason of a candidate that nobody here knows. */
export const passedOnReason = 'asked for by name, passed on as typed';

/** Ids go into addresses of some vendors: nothing may lead out of their place. */
const idPattern = /^[\p{L}\p{N}~][\p{L}\p{N}._:@/+~-]*$/u;

/** An aggregator's way of naming, `vendor/model`, which needs no prefix. */
const aggregated = /^~?[\w.-]+\/[\w.-]+(:[\w.-]+)*$/;

/** Passes an unknown id on where its provider may serve more than is listed; undefined where its list says no. */
export function passThrough(eligible: EligibleModels, text: string, scope?: RosterProvider): Passed | undefined {
  const provider = scope ?? (aggregated.test(text) ? eligible.provider('openrouter') : undefined);
  if (!provider?.configured) return undefined;
  if (provider.listComplete && !eligible.policy.allowUnknown) return undefined;
  const { id, suffix } = splitAsk(text);
  if (!idPattern.test(id) || id.includes('..')) throw malformedNameError('has characters that no model id has');
  const effort = suffix?.ask?.effort;
  // What is known of a program holds for each of its models: `gemini/gemini-3-pro` is one of `gemini`.
  const isWhole = ({ provider: own, id: whole }: ModelInfo) => own === provider.id && id.startsWith(`${whole}/`);
  const whole = provider.onlyByPrefix ? eligible.roster.models.find(isWhole) : undefined;
  return {
    model: plainModel({
      ...(whole ?? assumed),
      ...{ provider: provider.id, id, name: id },
      efforts: effort ? [effort] : [],
      reasoning: effort !== undefined && effort !== 'none',
    }),
    suffix,
    warning: whole
      ? ''
      : `"${id}" is not in the list of ${provider.id} known here; it is passed on as typed, with a window of ${assumed.window} tokens assumed.`,
  };
}

/** A known model whose maker has no key here, as OpenRouter names it, which serves nearly all; undefined without its key. */
export function offeredByAggregator(eligible: EligibleModels, rows: readonly ModelInfo[]): ModelInfo | undefined {
  const row = rows.find(model => eligible.refusal(model) === 'no_key' && makerSlugs.has(model.provider));
  const provider = eligible.provider('openrouter');
  if (!row || !provider?.configured) return undefined;
  const named = row.id.toLowerCase().replace(/-20\d{6}$/, '');
  // Anthropic writes versions with a dash, OpenRouter with a dot.
  const id = `${makerSlugs.get(row.provider)}/${row.provider === 'anthropic' ? named.replace(/-(\d)-(\d)$/, '-$1.$2') : named}`;
  const model = plainModel({ ...row, provider: provider.id, id, aliases: [], status: 'active', life: undefined });
  return eligible.refusal(model) ? undefined : model;
}
