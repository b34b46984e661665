import { join } from 'node:path';
import type { OptionSpec } from '../core/option.ts';
import { decoded } from '../core/text.ts';
import { homeProblem } from './home.ts';
import type { OptionValues } from './option-values.ts';
import { options } from './options.ts';

type Values = OptionValues<typeof options>;

/** The most characters of one text field: as set, else in proportion to the size of a reply, as callers of PAL know it. */
export function promptSizeLimit(values: Pick<Values, 'mcpPromptSizeLimit' | 'maxMcpOutputTokens'>): number {
  const proportional = Math.floor(values.maxMcpOutputTokens * 0.6) * 4;
  return values.mcpPromptSizeLimit ?? Math.min(options.mcpPromptSizeLimit.max, proportional);
}

/** Which tools the operator wants to be offered. */
export function exposurePolicy(values: Values) {
  const { profile, toolsets, tools, disabledTools = [], readOnly, writeGeneratedCode: writesCode } = values;
  const limited = [...rateLimits(values).limits.keys()];
  return { profile, toolsets, only: tools, disabled: disabledTools, limited, readOnly, writesCode };
}

const allowListSuffix = 'AllowedModels';

/** What the operator decided about the choice of models. */
export function routingPolicy(values: Values) {
  const { defaultModel, deniedModels: denied = [], localOnly, offline, routePrefer: prefer, webSearch } = values;
  const { autoCostLimit, allowUnknownModels: allowUnknown, allowUnpricedModels: allowUnpriced } = values;
  // By provider id. An empty list restricts nothing.
  const lists = Object.entries(values).flatMap(([name, value]) =>
    name.endsWith(allowListSuffix) && Array.isArray(value) && value.length > 0
      ? [[name.slice(0, -allowListSuffix.length), value]]
      : [],
  );
  const allowed: Record<string, readonly string[]> = Object.fromEntries(lists);
  const limits = { localOnly, offline, allowUnknown, autoCostLimit, allowUnpriced };
  return { defaultModel, allowed, denied, prefer, webSearch, ...limits };
}

/** When the web may be searched, and how much a search brings. */
export function searchSettings({ webSearch: when, webSearchMaxResults: maxResults, ...values }: Values) {
  return { when, maxResults, maxRounds: values.webSearchMaxRounds, contentSize: values.webSearchContentSize };
}

/** The variable that a list of models stands in: of the provider's allowed ones, or of the denied ones. */
export function listVariable(provider: string | undefined): string {
  const specs: Readonly<Record<string, OptionSpec>> = options;
  const spec = provider === undefined ? options.deniedModels : specs[`${provider}${allowListSuffix}`];
  return spec?.env[0] ?? `the models allowed of ${provider}`;
}

/** How many questions to models run at once, and what of the setting makes no sense. */
export function concurrency(values: Pick<Values, 'maxConcurrentCalls' | 'maxConcurrentPerProvider'>) {
  const perProvider: Record<string, number> = Object.create(null);
  const wrong: string[] = [];
  for (const entry of values.maxConcurrentPerProvider ?? []) {
    const [, provider, count] = /^([a-z][a-z0-9_-]*)\s*[=:]\s*([1-9]\d{0,4})$/i.exec(entry.trim()) ?? [];
    if (provider === undefined) wrong.push(entry);
    else perProvider[provider.toLowerCase()] = Number(count);
  }
  return { total: values.maxConcurrentCalls, perProvider, wrong };
}

/** Hosts count a reply by tokenizers of their own; the strictest needs this many of its tokens for one of ours. */
const strictestTokenizer = 1.45;

/** The most tokens of one reply, by our count. */
export const replyTokens = ({ maxMcpOutputTokens }: Pick<Values, 'maxMcpOutputTokens'>): number =>
  Math.floor(maxMcpOutputTokens / strictestTokenizer);

/** What the operator allows to be spent. */
export function spendCaps({ autoCostLimit: perAutoCall, maxCostPerRequest: perRequest, ...values }: Values) {
  return { perAutoCall, perRequest, perThread: values.maxCostPerThread, perDay: values.maxCostPerDay };
}

/** What `RATE_LIMITS=on` stands for: calls a minute by tool. */
const usualRates = { chat: 10, analyze: 5, codereview: 5, debug: 5, thinkdeep: 3, precommit: 3 };

/** Calls a minute by tool, and the words that say nothing of the kind. */
export function rateLimits({ rateLimits: words = [] }: Values): { limits: Map<string, number>; unknown: string[] } {
  const limits = new Map<string, number>();
  const unknown: string[] = [];
  for (const word of words) {
    const [, tool, maxCalls] = /^([\w-]+)\s*=\s*(\d{1,6})$/.exec(word.trim().toLowerCase()) ?? [];
    if (tool !== undefined && Number(maxCalls) > 0) limits.set(tool, Number(maxCalls));
    else if (/^(on|true|yes|1)$/i.test(word)) {
      for (const [name, rate] of Object.entries(usualRates)) if (!limits.has(name)) limits.set(name, rate);
    } else if (!/^(off|false|no|0)$/i.test(word)) unknown.push(word);
  }
  return { limits, unknown };
}

type StoreKey = 'private' | 'store' | `redis${'Url' | 'CaFile' | 'Prefix' | 'TimeoutMs' | 'Durability'}`;

/** Where threads live, in the form in which the store takes it: a file, a server, or neither. */
export interface StorePlace {
  file?: string;
  redis?: { url: string; caFile?: string | undefined; prefix: string; patienceMs: number; syncs?: boolean };
  /** Nothing is kept on this machine's disk. */
  isPrivate: boolean;
  /** For people, without credentials. */
  name: string;
}

export function storePlace(values: Pick<Values, StoreKey>, home: string): StorePlace {
  if (values.private || values.store === 'memory') return { isPrivate: true, name: 'memory, until this process ends' };
  if (values.store === 'sqlite') {
    const file = join(home, 'threads.sqlite');
    return { file, isPrivate: false, name: file };
  }
  const { redisUrl: url, redisCaFile: caFile, redisPrefix: prefix, redisTimeoutMs: patienceMs } = values;
  const name = `Redis at ${URL.parse(url)?.host ?? 'REDIS_URL'}`;
  // Threads live elsewhere: logs, caches and indexes can be done without.
  const redis = { url, caFile, prefix, patienceMs, syncs: values.redisDurability === 'always' };
  return { redis, isPrivate: homeProblem(home) !== undefined, name };
}

/** Where traces go; undefined: nowhere. The names are OpenTelemetry's and set for others too: what makes no sense is told (`wrong`). */
export function traceSettings(values: Values) {
  const { otelExporter = '', otelEndpoint, otelTracesEndpoint, otelProtocol = '' } = values;
  const exporters = otelExporter.toLowerCase().split(/[\s,]+/);
  const isWanted =
    otelExporter === '' ? (otelEndpoint ?? otelTracesEndpoint) !== undefined : exporters.includes('otlp');
  if (!isWanted || /^true$/i.test(values.otelDisabled ?? '')) return {};
  const collector = (otelEndpoint ?? 'http://localhost:4318').replace(/\/+$/, '');
  const url = otelTracesEndpoint ?? `${collector}/v1/traces`;
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    return { wrong: `No traces are sent: ${url} is no http address; set OTEL_EXPORTER_OTLP_ENDPOINT to one.` };
  if (/grpc/i.test(otelProtocol)) {
    const next = 'set OTEL_EXPORTER_OTLP_PROTOCOL to http/json and the endpoint to that of OTLP/HTTP (port 4318).';
    return { wrong: `No traces are sent: they go by HTTP alone; ${next}` };
  }
  const headers = { ...pairsIn(values.otelHeaders), ...pairsIn(values.otelTracesHeaders) };
  const resource = { ...pairsIn(values.otelResourceAttributes), 'service.name': values.otelServiceName };
  const content = /^(?:true|1|span_only|span_and_event)$/i.test(values.otelContent ?? '');
  const asCallers = /^(?:parentbased_|$)/i.test(values.otelSampler ?? '');
  return { traces: { url, headers, resource, sampleRatio: sampleRatio(values), asCallers, content } };
}

function sampleRatio({ otelSampler = '', otelSamplerArg = '' }: Values): number {
  if (/always_off$/i.test(otelSampler)) return 0;
  const ratio = Number(otelSamplerArg);
  const isRatio = otelSamplerArg !== '' && ratio >= 0 && ratio <= 1;
  return isRatio && !/always_on$/i.test(otelSampler) ? ratio : 1;
}

/** `name=value,name=value`, the values in percent-encoding; what is of another form is left out. */
function pairsIn(text = ''): Record<string, string> {
  const pairs = text.split(',').flatMap(pair => {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    return name === undefined || value === undefined ? [] : [[name, decoded(value)] as const];
  });
  return Object.fromEntries(pairs);
}
