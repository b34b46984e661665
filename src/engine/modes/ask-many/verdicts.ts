import { readControlStatus, roundedCost } from '../../../calls/reply.ts';
import type { JsonObject } from '../../../core/json.ts';
import { modelName } from '../../../core/model.ts';
import { cutMiddle } from '../../../core/text.ts';
import type { PanelistRecord } from '../../../core/thread.ts';
import { prefixWithin } from '../../../core/tokens.ts';
import { answerFacts, nameOf, type Target, type TargetResponse } from './ask-many.ts';
import type { Panelist } from './panelists.ts';

const maxSummaryLength = 400;
const maxPositionLength = 80;
const marks = '[\\s#*_>-]*';

/** The same within one line: what spans lines would be gone through again from each of them. */
const lead = '(?:[^\\S\\r\\n\\u2028\\u2029]|[#*_>-])*';

const heading = (word: string) => new RegExp(`^${lead}${word}${marks}[::]?${marks}(.*)$`, 'im');

const positionLine = heading('position');
const verdictLine = heading('verdict');

/**
 * What can be read from a verdict that keeps to the form it was asked for. `short`: its own first sentence; `confidence`: 0 to 10;
 * `position`: `support`, `support with conditions`, `oppose`, or the option it chooses, in lower case.
 */
export function parseVerdict(text: string) {
  const confidence = confidenceIn(text);
  const position = positionIn(text);
  const short = firstWords(text, verdictLine.exec(text)) ?? text.trim();
  return { short: cutMiddle(short, maxSummaryLength), confidence, position };
}

/** The first line with words, behind a heading where there is one. */
function firstWords(text: string, found: RegExpExecArray | null): string | undefined {
  const after = found ? `${found[1]}\n${text.slice(found.index + found[0].length)}` : text;
  return after
    .split('\n')
    .map(bare)
    .find(line => line !== '');
}

const bare = (line: string): string => line.replace(/^[\s#*_>-]+|(?<![\s*_])[\s*_]+$/g, '');

function positionIn(text: string): string | undefined {
  const found = positionLine.exec(text);
  const word = found ? firstWords(text, found) : undefined;
  if (word === undefined || word.length > maxPositionLength) return undefined;
  const words = word.toLowerCase().replace(/["'`´‘’“”*_.!,;:()[\]]+(?=\s|$)|(?<=^|\s)["'`´‘’“”*_([]+/g, '');
  const flat = words
    .replace(/[\s–-]+/g, ' ')
    .replace(/^(?:the|an?|option) (?=.)/, '')
    .trim();
  if (/^(?:do not|don't|not) support|^oppos/.test(flat)) return 'oppose';
  if (!/^support/.test(flat)) return flat || undefined;
  return /condition|provided|unless|reservation|\b(?:if|once|when)\b/.test(flat)
    ? 'support with conditions'
    : 'support';
}

function confidenceIn(text: string): number | undefined {
  const found =
    /confidence[^\n\d]{0,40}\n{0,2}[^\n\d]{0,20}(\d{1,3}(?:\.\d+)?)\s*(\/\s*10\b|out of (?:10|ten)\b|%)/i.exec(text);
  if (!found) return undefined;
  const value = Number(found[1]) / (found[2] === '%' ? 10 : 1);
  return value <= 10 ? value : undefined;
}

export interface Vote extends Partial<Pick<ReturnType<typeof parseVerdict>, 'confidence' | 'position'>> {
  label: string;
}

export type Tally = ReturnType<typeof tallyOf>;

/**
 * Counts the verdicts. `level`: how sure the panel is as a whole; `mean`, `lowest` and `highest`: of their own numbers, 0 to 10;
 * `positions`: labels by position, the most frequent first; `minority`: labels of those against the `majority`, where there is one.
 */
export function tallyOf(votes: readonly Vote[]) {
  const numbers = votes.flatMap(({ confidence }) => confidence ?? []);
  const sum = numbers.reduce((total, next) => total + next, 0);
  const mean = numbers.length === 0 ? undefined : Number((sum / numbers.length).toFixed(1));
  const positions = positionsOf(votes);
  const [first, second] = [...positions];
  const majority = first && (!second || first[1].length > second[1].length) ? first[0] : undefined;
  const minority = [...positions].flatMap(([position, labels]) =>
    majority === undefined || position === majority ? [] : labels,
  );
  return {
    level: levelOf(mean, positions.size, first?.[1].length ?? 0, votes.length),
    mean,
    ...(mean !== undefined && { lowest: Math.min(...numbers), highest: Math.max(...numbers) }),
    positions,
    majority,
    minority: minority.toSorted(),
  };
}

function positionsOf(votes: readonly Vote[]): Map<string, string[]> {
  const taken = votes.flatMap(({ label, position }) => (position === undefined ? [] : [{ label, position }]));
  const groups = [...Map.groupBy(taken, ({ position }) => position)].sort(([, a], [, b]) => b.length - a.length);
  return new Map(groups.map(([position, all]) => [position, all.map(({ label }) => label)]));
}

/** Sure models that contradict each other make no sure panel. */
function levelOf(mean: number | undefined, sides: number, largest: number, voters: number) {
  if (mean === undefined) return 'unknown';
  if (mean < 5 || (sides > 1 && largest * 3 < voters * 2)) return 'low';
  return mean >= 7.5 && sides <= 1 ? 'high' : 'medium';
}

/** A verdict with the letter of the model that gave it. */
export interface Labelled {
  label: string;
  text: string;
}

const withheld = '[name withheld]';

/** Words by which models give away who they or their makers are. */
const brands =
  'gpt|chatgpt|openai|claude|anthropic|gemini|google|deepmind|grok|xai|llama|meta ai|mistral|deepseek|qwen|alibaba|kimi|moonshot|glm|zhipu|minimax|openrouter|ollama|groq|azure openai|microsoft copilot';

const brandWord = new RegExp(`(?<![\\p{L}\\p{N}])(?:${brands})(?![\\p{L}])[\\p{L}\\p{N}.:/_-]*(?<![.:/_-])`, 'giu');

/**
 * A verdict without the names of models and their makers, so that it is weighed by what it says. Names that the proposal
 * itself is about stay: without them the verdict would make no sense.
 */
export function anonymize(text: string, panelists: readonly Target[], proposal: string): string {
  const subject = proposal.toLowerCase();
  let out = text;
  for (const name of namesOf(panelists)) {
    if (!subject.includes(name.toLowerCase())) out = out.replaceAll(new RegExp(bounded(name), 'giu'), withheld);
  }
  return out.replaceAll(brandWord, word => (subject.includes(word.toLowerCase()) ? word : withheld));
}

/** Longest first, so that no name is cut out of a longer one. Plain words are left: they may mean anything. */
function namesOf(panelists: readonly Target[]): string[] {
  const names = panelists.flatMap(({ model, who }) => [
    model,
    ...('candidates' in who ? who.candidates.flatMap(next => [modelName(next), next.model.id, next.model.name]) : []),
  ]);
  return [...new Set(names)].filter(name => /[\d:/-]/.test(name)).toSorted((a, b) => b.length - a.length);
}

const bounded = (name: string): string =>
  `(?<![\\p{L}\\p{N}])${name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}(?![\\p{L}\\p{N}])`;

/** Verdicts side by side, each cut to its share of the room. */
export function sideBySide(verdicts: readonly Labelled[], roomTokens: number): string {
  const share = Math.max(100, Math.floor(roomTokens / Math.max(1, verdicts.length)));
  return verdicts
    .map(({ label, text }) => {
      const shown = prefixWithin(text, share);
      const body = shown.length < text.length ? `${shown}\n[… cut]` : text;
      return `--- BEGIN VERDICT: Expert ${label} ---\n${body}\n--- END VERDICT: Expert ${label} ---`;
    })
    .join('\n\n');
}

/** One panelist with what came of asking it. */
export interface PanelistResponse extends TargetResponse<Panelist> {
  round: number;
  /** Why a second round brought no new verdict. */
  notRevised?: string;
}

/** What a model asks for instead of giving a verdict; undefined when it gave one, or failed. */
export const askedInstead = ({ outcome }: PanelistResponse) =>
  outcome.status === 'success' ? readControlStatus(outcome.answer.text) : undefined;

/** The responses with a verdict: none that failed, or asked for files instead. */
export const verdictsIn = (responses: readonly PanelistResponse[]) =>
  responses.flatMap(response => {
    const { outcome, target } = response;
    if (outcome.status !== 'success' || askedInstead(response)) return [];
    return [{ target, text: outcome.answer.text, facts: parseVerdict(outcome.answer.text) }];
  });

export const verdictOf = (response: PanelistResponse) => verdictsIn([response])[0];

export function anonymousVerdicts(responses: readonly PanelistResponse[], proposal: string): Labelled[] {
  const panelists = responses.map(({ target }) => target);
  return verdictsIn(responses).map(({ target: { label }, text }) => {
    return { label, text: anonymize(text, panelists, proposal) };
  });
}

/** One sentence on a model without a verdict. */
export function whyNoVerdict({ outcome }: PanelistResponse): string {
  if (outcome.status === 'success') return 'It asked for more instead of giving a verdict.';
  return outcome.status === 'skipped' ? `Not asked. ${outcome.error.message}` : outcome.error.message;
}

/** A response as replies show it; `text`: as much of its verdict as there is room for, absent: all. */
export function responseOf({ target, outcome }: PanelistResponse, text?: string): JsonObject {
  const { model, stance, who } = target;
  const shared = { model, stance, status: outcome.status };
  if (outcome.status === 'success') {
    const { answer } = outcome;
    const model_corrected = 'candidates' in who && who.corrected ? { ...who.corrected } : undefined;
    const metadata = { provider: answer.model.provider, model_name: answer.model.id, model_corrected };
    return { ...shared, verdict: text ?? answer.text, ...answerFacts(answer), metadata };
  }
  const { message, details } = outcome.error;
  const planned = 'candidates' in who ? who.candidates[0].model : undefined;
  const metadata = { provider: planned?.provider, model_name: planned?.id };
  if (outcome.status === 'skipped') return { ...shared, reason: outcome.because, error: message, metadata };
  return {
    ...shared,
    error: message,
    error_code: details.code,
    error_class: details.class,
    next: details.next,
    retryable: details.retryable,
    latency_ms: Math.round(outcome.latencyMs),
    metadata,
  };
}

/** A response as the turn keeps it; its text is what stands between `from` and `to` of the content. */
export function panelistRecord(response: PanelistResponse, from: number, to: number): PanelistRecord {
  const { target, outcome } = response;
  const { position, confidence } = verdictOf(response)?.facts ?? {};
  const answer = outcome.status === 'success' ? outcome.answer : undefined;
  const costUsd = roundedCost(answer?.costUsd);
  return {
    expert: target.label,
    model: nameOf(response),
    stance: target.stance,
    status: outcome.status,
    position,
    confidence,
    latencyMs: answer && Math.round(answer.latencyMs),
    costUsd,
    from,
    to,
  };
}
