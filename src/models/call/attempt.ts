import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { onAbort, orAbort } from '../../core/concurrency.ts';
import { AppError } from '../../core/errors.ts';
import { isRecord, recordIn, textsIn } from '../../core/json.ts';
import type { SaidPart } from '../../core/message.ts';
import { safeCut } from '../../core/text.ts';
import type { Usage } from '../../core/usage.ts';
import { fullWindow, type ModelAnswer, type ModelQuestion, pausedTurn } from '../ask-model.ts';
import type { Use } from '../fees.ts';
import type { Connection } from '../provider.ts';
import { badUpstream } from '../resilience/errors.ts';
import type { AttemptTimeouts } from '../resilience/limiter.ts';
import type { ReplyAccumulator } from './messages.ts';

/** All that one attempt brought, whether it ended well or not. */
export interface AttemptOutcome
  extends Pick<ModelAnswer, 'text' | 'citations' | 'warnings' | 'providerMetadata'>,
    Partial<Pick<ModelAnswer, 'finish'>> {
  /** Some of the text went to the caller, who can't take it back. */
  passedOn: boolean;
  /** Characters of reasoning that streamed by. */
  reasoningChars: number;
  /** Characters of the calls' arguments. */
  callChars: number;
  /** Everything that was said, where that was asked for. */
  said?: SaidPart[];
  /** As the vendor told at the end. Absent when it told none, as broken streams do. */
  usage?: Usage;
  /** What the vendor told before the end; Anthropic and Google do. */
  told?: Partial<Usage>;
  /** What the vendor charges for in addition to tokens. */
  uses: Use[];
  /** What the vendor charged, where it tells. */
  costUsd?: number;
  /** What a program did with tools of its own, in its order. */
  steps?: readonly Record<string, unknown>[];
  /** The vendor began to work on it and did not report a failure, or was silent until the request was given up. */
  accepted?: boolean;
  /** What ended it, as it was thrown. Absent: the answer is whole. */
  failure?: unknown;
}

/** Far above any real answer; a stream that passes it would fill the memory before its clocks run out. */
const maxChars = 1_000_000;

const maxCharsPerToken = 20;

/** What a vendor tells beside the text is kept for good and goes into every reply: it has to stay small. Characters, but for `citations`. */
const most = { citations: 200, url: 4_000, title: 300, snippet: 500, date: 80, finishReason: 80 };

interface AttemptInput extends Pick<ModelQuestion, 'onText' | 'onProgress' | 'onSent'>, Pick<Connection, 'usesIn'> {
  model: LanguageModelV4;
  provider: string;
  call: Omit<LanguageModelV4CallOptions, 'abortSignal'>;
  clocks: AttemptTimeouts;
  onStart?: ((warnings: readonly string[]) => void) | undefined;
  /** Collects what was said with the calls of tools in it. Absent: the text alone counts. */
  saying?: ReplyAccumulator;
}

/** What an attempt has brought before it asks. */
export const none = () => ({ text: '', passedOn: false, reasoningChars: 0, callChars: 0, citations: [], warnings: [] });

/**
 * Asks once and reads the stream to its end. Never throws for what the vendor or the clocks did: that is `failure`, and
 * what came before it stays. The connection is closed unless the answer came whole.
 */
export async function attempt(input: AttemptInput): Promise<AttemptOutcome> {
  const outcome: AttemptOutcome = { ...none(), uses: [] };
  const { clocks } = input;
  const sent = !clocks.signal.aborted;
  if (sent) input.onSent?.();
  try {
    // The vendors' packages tell tokens at the end alone; of a stream that breaks, its own chunks tell what is paid for.
    const pending = input.model.doStream({ ...input.call, includeRawChunks: true, abortSignal: clocks.signal });
    const { stream, response } = await orAbort(pending, clocks.signal);
    await read(stream, input, outcome);
    outcome.failure = shortcoming(input, outcome, response?.headers?.['content-type']);
  } catch (error) {
    if (sent && clocks.signal.aborted) outcome.accepted = true;
    // Whatever goes wrong after the answer was finished is only the closing of the stream.
    outcome.failure = outcome.finish ? shortcoming(input, outcome) : (clocks.expired() ?? error);
  }
  if (input.saying) outcome.said = input.saying.parts();
  clocks.stop(outcome.failure !== undefined);
  return outcome;
}

async function read(stream: ReadableStream<LanguageModelV4StreamPart>, input: AttemptInput, outcome: AttemptOutcome) {
  const { signal } = input.clocks;
  const reader = stream.getReader();
  // Ends the read that is waited for. Not awaited: a stream that hangs would hang here too.
  const stop = (reason: unknown = signal.reason) => void reader.cancel(reason).catch(() => undefined);
  const forget = onAbort(signal, () => stop());
  try {
    signal.throwIfAborted();
    for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value, input, outcome);
    signal.throwIfAborted();
  } catch (error) {
    stop(error);
    throw error;
  } finally {
    forget();
  }
}

function take(part: LanguageModelV4StreamPart, input: AttemptInput, outcome: AttemptOutcome): void {
  input.saying?.take(part);
  const used = input.usesIn?.(part);
  if (part.type === 'finish') outcome.uses = outcome.uses.filter(({ provisional }) => !provisional);
  if (used) outcome.uses.push(used);
  switch (part.type) {
    case 'stream-start':
      outcome.warnings.push(...part.warnings.map(warning => warningText(warning, input.provider)));
      return;
    case 'text-delta':
    case 'reasoning-delta':
    case 'tool-input-delta':
      takeDelta(part.type, part.delta, input, outcome);
      return;
    case 'source':
      if (part.sourceType === 'url') takeCitation(part, input.provider, outcome);
      return;
    case 'raw':
      outcome.accepted ||= isRecord(part.rawValue);
      outcome.told = withCounts(outcome.told, countsIn(part.rawValue));
      return;
    case 'tool-call':
      // A search at the vendor is part of the answer: it leaves no call behind that would have been cut.
      if (part.providerExecuted) outcome.callChars = 0;
      else outcome.callChars ||= part.toolName.length + part.input.length;
      return;
    case 'error':
      outcome.accepted = false;
      throw part.error;
    case 'finish':
      outcome.usage = usageOf(part.usage);
      outcome.finish = finishOf(part.finishReason);
      takeProviderMetadata(part.providerMetadata, input.provider, outcome);
      input.clocks.settle();
      if (!outcome.finish && rawOf(part.finishReason))
        throw badUpstream(`The model did not complete the answer (${rawOf(part.finishReason)}).`);
      return;
  }
}

/** Leading white space waits for the first letter, so that a blank answer was never passed on and can be asked for again. */
function takeText(delta: string, { onText, onStart }: AttemptInput, outcome: AttemptOutcome): void {
  outcome.text += delta;
  const { passedOn } = outcome;
  // Only the piece is looked at: to trim the whole text with each would take seconds for a long answer.
  if (!onText || delta === '' || (!passedOn && delta.trim() === '')) return;
  outcome.passedOn = true;
  if (!passedOn) onStart?.(outcome.warnings);
  onText(passedOn ? delta : outcome.text);
}

/** Takes as much of it as an answer may have. */
function takeDelta(type: string, said: string, input: AttemptInput, outcome: AttemptOutcome): void {
  const limit = maxChars + maxCharsPerToken * (input.call.maxOutputTokens ?? 0);
  const room = limit - outcome.text.length - outcome.reasoningChars - outcome.callChars;
  const delta = said.length > room ? safeCut(said, room) : said;
  input.clocks.progress(delta.length);
  input.onProgress?.(delta);
  if (type === 'text-delta') takeText(delta, input, outcome);
  else if (type === 'reasoning-delta') outcome.reasoningChars += delta.length;
  else outcome.callChars += delta.length;
  if (said.length > room) throw badUpstream(`The answer did not end after ${limit} characters.`, false);
}

/** Programs tell more than vendors do, and only at their end what they could not do. */
function takeProviderMetadata(all: SharedV4ProviderMetadata | undefined, provider: string, outcome: AttemptOutcome) {
  const metadata = all?.[provider];
  outcome.costUsd = costOf(metadata);
  if (isRecord(metadata?.told)) outcome.providerMetadata = metadata.told;
  if (Array.isArray(metadata?.steps)) outcome.steps = metadata.steps.filter(isRecord);
  outcome.warnings.push(...textsIn(metadata?.warnings).map(warning => `${provider}: ${warning}`));
}

/** Providers pass more of a hit on as `snippet` and `date` in metadata. A page told of twice is one citation, with both tellings. */
function takeCitation(
  { url, title, providerMetadata }: Extract<LanguageModelV4StreamPart, { sourceType: 'url' }>,
  provider: string,
  outcome: AttemptOutcome,
): void {
  if (url.length > most.url || !/^https?:/i.test(url)) return;
  const { snippet, date } = providerMetadata?.[provider] ?? {};
  const known = outcome.citations.find(citation => citation.url === url);
  if (!known && outcome.citations.length >= most.citations) return;
  const citation = known ?? { title: url, url, provider };
  if (!known) outcome.citations.push(citation);
  // Some vendors put the number of the citation where its title belongs.
  if (title && !/^\d+$/.test(title) && citation.title === url) citation.title = safeCut(title, most.title);
  if (isText(snippet)) citation.snippet ??= safeCut(snippet, most.snippet);
  if (isText(date)) citation.date ??= safeCut(date, most.date);
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

function warningText(warning: SharedV4Warning, provider: string): string {
  if (warning.type === 'other') return `${provider}: ${warning.message}`;
  if (warning.type === 'deprecated') return `${provider}: ${warning.setting}: ${warning.message}`;
  return `${provider}: ${warning.details ?? `${warning.feature} is not supported`}`;
}

/** Where the chunks of vendors' streams have their counts of tokens: OpenAI's dialects, Groq, Anthropic, Google. */
function countsIn(chunk: unknown): Record<string, unknown> | undefined {
  if (!isRecord(chunk)) return undefined;
  const { usage, usageMetadata, message, response, x_groq: groq } = chunk;
  for (const counts of [usage, usageMetadata]) if (isRecord(counts)) return counts;
  for (const place of [message, response, groq]) if (isRecord(place) && isRecord(place.usage)) return place.usage;
  return undefined;
}

/** What was told of tokens so far, with what these counts tell; what they do not tell is left out. */
function withCounts(before: AttemptOutcome['told'], counts: ReturnType<typeof countsIn>): AttemptOutcome['told'] {
  if (!counts) return before;
  const told = {
    // Anthropic counts what comes from its cache and what goes there apart.
    input:
      sumOf(counts, 'input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens') ||
      sumOf(counts, 'prompt_tokens') ||
      sumOf(counts, 'promptTokenCount', 'toolUsePromptTokenCount'),
    output:
      sumOf(counts, 'output_tokens') ||
      sumOf(counts, 'completion_tokens') ||
      sumOf(counts, 'candidatesTokenCount', 'thoughtsTokenCount'),
    reasoning: detailOf(counts, 'reasoning_tokens') || sumOf(counts, 'thoughtsTokenCount'),
    cacheRead:
      sumOf(counts, 'cache_read_input_tokens') ||
      detailOf(counts, 'cached_tokens') ||
      sumOf(counts, 'cachedContentTokenCount'),
    cacheWrite: sumOf(counts, 'cache_creation_input_tokens'),
    cacheWriteHour: keptForAnHour(counts),
  };
  const all = { ...before };
  for (const kind of kindsOfTokens) if (told[kind] > 0) all[kind] = told[kind];
  return all;
}

const kindsOfTokens = ['input', 'output', 'reasoning', 'cacheRead', 'cacheWrite', 'cacheWriteHour'] as const;

const sumOf = (counts: Record<string, unknown>, ...names: readonly string[]): number =>
  names.reduce((sum, name) => sum + count(counts[name]), 0);

/** What the details of input and output tell of one kind of tokens. */
function detailOf(counts: Record<string, unknown>, kind: string): number {
  const details = ['input', 'prompt', 'output', 'completion'].map(side => counts[`${side}_tokens_details`]);
  return details.reduce<number>((sum, each) => sum + count(recordIn(each)[kind]), 0);
}

/** Absent numbers are computed from their parts; absent at all when the vendor told nothing. */
function usageOf({ inputTokens, outputTokens, raw }: LanguageModelV4Usage): Usage | undefined {
  // No prompt has no tokens: counts of zero stand for none.
  if (!inputTokens.total && !outputTokens.total) return undefined;
  const told = count(inputTokens.cacheRead) + count(inputTokens.cacheWrite);
  const input = count(inputTokens.total ?? count(inputTokens.noCache) + told);
  const cacheRead = Math.min(input, count(inputTokens.cacheRead));
  const cacheWrite = Math.min(input - cacheRead, count(inputTokens.cacheWrite));
  const reasoning = count(outputTokens.reasoning);
  const hour = Math.min(cacheWrite, keptForAnHour(raw));
  return {
    input,
    output: count(outputTokens.total ?? count(outputTokens.text) + reasoning),
    reasoning,
    cacheRead,
    cacheWrite,
    ...(hour > 0 && { cacheWriteHour: hour }),
  };
}

/** Anthropic's word for the part of a cache write that costs more; the SDK passes it on as it came. */
const keptForAnHour = (raw: Record<string, unknown> | undefined): number =>
  count(recordIn(raw?.cache_creation).ephemeral_1h_input_tokens);

const count = (tokens: unknown): number =>
  typeof tokens === 'number' && Number.isFinite(tokens) && tokens > 0 ? tokens : 0;

/** xAI counts money in these. */
const ticksPerDollar = 10_000_000_000;

/** Providers whose vendor tells the price of a call pass it on as `costUsd` in their metadata; xAI's package does in ticks. */
function costOf(metadata: SharedV4ProviderMetadata[string] | undefined): number | undefined {
  const ticks = metadata?.costInUsdTicks;
  const cost = metadata?.costUsd ?? (typeof ticks === 'number' ? ticks / ticksPerDollar : undefined);
  return typeof cost === 'number' && Number.isFinite(cost) && cost >= 0 ? cost : undefined;
}

type End = ModelAnswer['finish']['kind'] | 'broken';

const unifiedEnds: Readonly<Record<LanguageModelV4FinishReason['unified'], End>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
  other: 'other',
  error: 'broken',
  interrupted: 'broken',
};

/** Vendors' words for an end that their packages do not know, or take for another one. */
const ends: Readonly<Record<string, End>> = {
  [fullWindow]: 'length',
  max_tokens: 'length',
  model_length: 'length',
  eos: 'stop',
  eos_token: 'stop',
  stop_sequence: 'stop',
  end_turn: 'stop',
  [pausedTurn]: 'other',
  refusal: 'content_filter',
  sensitive: 'content_filter',
  LANGUAGE: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  error: 'broken',
  network_error: 'broken',
  insufficient_system_resource: 'broken',
  abort: 'broken',
};

/** The vendor's own word; undefined for a blank one. */
const rawOf = ({ raw = '' }: LanguageModelV4FinishReason): string | undefined =>
  safeCut(raw.trim(), most.finishReason) || undefined;

/** Undefined for an end that is none: broken off at the vendor, or without a reason. */
function finishOf(reason: LanguageModelV4FinishReason): ModelAnswer['finish'] | undefined {
  const raw = rawOf(reason);
  const own = raw !== undefined && Object.hasOwn(ends, raw) ? ends[raw] : undefined;
  const kind = own ?? unifiedEnds[reason.unified] ?? 'other';
  return kind === 'broken' || (kind === 'other' && raw === undefined) ? undefined : { kind, raw };
}

/** What is wrong with a stream that ended without an error. */
function shortcoming({ call, saying }: AttemptInput, outcome: AttemptOutcome, contentType?: string) {
  const { finish, text } = outcome;
  if (!finish) {
    if (text === '' && contentType !== undefined && !contentType.includes('event-stream')) {
      const next = "Check the provider's base URL and any proxy in between, or choose another model.";
      return badUpstream(`The answer was no stream of events, but ${contentType.slice(0, 60)}.`, true, next);
    }
    return badUpstream('The stream ended before the answer was finished.');
  }
  if (text.trim() !== '' || (saying?.calls() ?? 0) > 0) return undefined;
  const final = (kind: string, message: string) =>
    new AppError('model', message, { code: 'API_ERROR', class: kind, retryable: false });
  if (finish.kind === 'content_filter')
    return final(finish.kind, `The provider refused to answer (${finish.raw ?? 'content filter'}).`);
  if (finish.raw === fullWindow)
    return final('context_length', `The prompt left no tokens for an answer (${fullWindow}).`);
  if (finish.kind === 'length') {
    const next = 'Use a lower thinking effort or a smaller budget, or choose another model.';
    return badUpstream('The model used all of its output for thinking and wrote no answer.', false, next);
  }
  // Nothing to add to what its tools brought: vendors' models end like this, and the tools have done their work.
  const afterTools = call.prompt.at(-1)?.role === 'tool';
  if (afterTools && finish.kind === 'stop') return undefined;
  // Who ends for a reason of its own would end like this again.
  const named = finish.kind !== 'stop' && finish.raw !== pausedTurn ? finish.raw : undefined;
  const settled = named !== undefined || afterTools;
  return badUpstream(`The answer was empty${named === undefined ? '' : ` (${named})`}.`, !settled);
}
