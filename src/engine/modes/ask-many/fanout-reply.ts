import { turnOf } from '../../../calls/ask/prepare-context.ts';
import { documentTokens } from '../../../calls/format-reply.ts';
import { errorOf, localMetadata, usageDocument } from '../../../calls/reply.ts';
import { isAppError } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import { safeCut } from '../../../core/text.ts';
import { estimateTokens, prefixWithin } from '../../../core/tokens.ts';
import { type FanoutRun, nameOf, type TargetResponse } from './ask-targets.ts';
import { costOf } from './panelist-response.ts';

/** An entry of a reply, and the answer that stands in it under `response`. */
export interface TargetEntry {
  facts: JsonObject;
  text?: string;
}

/** Where the whole of an entry's answer is kept: a turn of a thread, and where in it the answer begins. */
export interface Kept {
  thread: string;
  seq: number;
  offset: number;
}

/** A text is never cut shorter than this many tokens. */
const shortTokens = 60;

/** What an entry's words on its cut cost. */
const noteTokens = 90;

export function documentWith(
  entries: readonly TargetEntry[],
  make: (documents: JsonObject[]) => JsonObject,
): JsonObject {
  return make(entries.map(whole));
}

function whole({ facts, text }: TargetEntry): JsonObject {
  const { model, requested, ...rest } = facts;
  return text === undefined ? facts : { model, requested, response: text, ...rest };
}

/**
 * The reply with its answers cut so that it has at most `limit` tokens: the short ones stay whole, the long ones get equal
 * parts of what is left. No entry is lost; where its whole answer is kept, a cut one has the cursor to read on.
 */
export function truncateResponses(
  entries: readonly TargetEntry[],
  make: (documents: JsonObject[]) => JsonObject,
  limit: number,
  kept: readonly (Kept | undefined)[],
): JsonObject {
  const sizes = entries.map(({ text = '' }) => estimateTokens(JSON.stringify(text)));
  const empty = entries.map(entry => (entry.text === undefined ? entry : { ...entry, text: '' }));
  const overhead = documentTokens(documentWith(empty, make)) + noteTokens * entries.length;
  for (let room = limit - overhead; ; room = Math.floor(room * 0.8)) {
    const share = Math.max(shortTokens, equalShare(sizes, room));
    const document = make(entries.map((entry, index) => cut(entry, sizes[index] ?? 0, share, kept[index])));
    if (documentTokens(document) <= limit || share <= shortTokens) return document;
  }
}

/** The size that each may have at the most, so that all together take no more than `room`. */
function equalShare(sizes: readonly number[], room: number): number {
  let left = room;
  const ascending = sizes.toSorted((a, b) => a - b);
  for (const [index, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Math.max(0, ...sizes);
}

function cut(entry: TargetEntry, size: number, share: number, kept: Kept | undefined): JsonObject {
  const { facts, text } = entry;
  if (text === undefined || size <= share) return whole(entry);
  const beginning = prefixWithin(text, share);
  return {
    ...whole({ facts, text: beginning }),
    truncated: {
      total_tokens: estimateTokens(text),
      shown_characters: beginning.length,
      ...(kept && {
        artifact: `polylogue://threads/${kept.thread}/turns/${kept.seq}`,
        next_cursor: `${kept.seq}:${kept.offset + beginning.length}`,
      }),
    },
  };
}

/** A response as replies show it, without the answer's text. */
export function factsOf({ target, outcome }: TargetResponse): JsonObject {
  const corrected = 'candidates' in target.who && target.who.corrected ? { ...target.who.corrected } : undefined;
  const facts = { model: nameOf(target, outcome), requested: target.requested, model_corrected: corrected };
  if ('error' in outcome) return { ...facts, ...listed(target.warnings), error: errorOf(outcome.error) };
  const { answer } = outcome;
  const { usage } = answer;
  return {
    ...facts,
    partial: answer.partial || answer.finish.kind === 'length' ? true : undefined,
    ...listed([...target.warnings, ...answer.warnings]),
    citations: answer.citations.length > 0 ? answer.citations.map(citation => ({ ...citation })) : undefined,
    latency_ms: Math.round(answer.latencyMs),
    tokens: { input: usage.input, output: usage.output },
    cost_usd: costOf(answer.costUsd),
  };
}

function listed(warnings: readonly string[]): JsonObject {
  return { warnings: warnings.length > 0 ? [...warnings] : undefined };
}

/** The call as a whole: what it took, all models together. */
export function metadataOf({ services, call, spent }: FanoutRun, warnings: readonly string[] = []): JsonObject {
  const { usage, costUsd } = spent;
  const elapsedMs = services.clock.monotonic() - call.startedAt;
  return {
    ...localMetadata({ ...call, warnings: [...call.warnings, ...warnings] }, elapsedMs),
    usage: usageDocument(usage),
    cost_usd: costOf(costUsd),
  };
}

const note =
  'Some answers are longer than a reply takes. Read on: call "threads" with action "read", this continuation_id and a slot\'s next_cursor as cursor. "prompt_from_file_to_file" writes answers into files instead.';

/**
 * The keys of a reply around its entries: `result`, and what goes with it. Answers that are too long for one reply were paid
 * for all the same: only then a thread is written, which has them whole.
 */
export async function replyWith(
  run: FanoutRun,
  entries: readonly TargetEntry[],
  make: (documents: JsonObject[]) => JsonObject,
): Promise<JsonObject> {
  const { replyTokens } = run.services;
  const document = { ...documentWith(entries, make), metadata: metadataOf(run) };
  if (documentTokens(document) <= replyTokens) return document;
  const { kept, warnings } = await keep(run, entries);
  const thread = kept.find(place => place)?.thread;
  const metadata = metadataOf(run, warnings);
  const full = (documents: JsonObject[]) => ({
    ...make(documents),
    ...(thread !== undefined && { continuation_id: thread, truncated: { note } }),
    metadata,
  });
  return truncateResponses(entries, full, replyTokens, kept);
}

async function keep(
  run: FanoutRun,
  entries: readonly TargetEntry[],
): Promise<{ kept: readonly (Kept | undefined)[]; warnings: string[] }> {
  const { services, call, text, spent } = run;
  const { threads } = services;
  const { content, offsets } = joined(entries);
  const { owner, root } = call.request.principal;
  const blank = threads.start({ owner, workspace: root }, call.tool.name);
  const exchange = services.newExchange();
  const asked = entries.flatMap(({ facts, text: answer }) => (answer === undefined ? [] : [String(facts.model)]));
  const modelMetadata = { asked, usage: spent.usage, costUsd: spent.costUsd };
  const turns = [
    turnOf(services, call, { seq: 1, role: 'user', content: text, exchange }),
    turnOf(services, call, { seq: 2, role: 'assistant', content, exchange, modelMetadata }),
  ];
  const tokens = spent.usage.input + spent.usage.output;
  try {
    const started = { ...blank, title: titleOf(text) };
    const thread = await threads.add(started, exchange, {
      turns,
      status: 'done',
      tokens,
      costUsd: spent.costUsd,
    });
    return { kept: offsets.map(offset => offset && { thread: thread.id, seq: 2, ...offset }), warnings: [] };
  } catch (error) {
    // The beginnings are worth having; the reply says that there is no more.
    const why = isAppError(error) ? error.message : 'the store failed';
    return { kept: [], warnings: [`not_persisted: what was cut of the answers is not kept: ${why}`] };
  }
}

/** All answers as one text, each below its model's name, and where each begins. */
function joined(entries: readonly TargetEntry[]): { content: string; offsets: ({ offset: number } | undefined)[] } {
  let content = '';
  const offsets = entries.map(({ facts, text }) => {
    if (text === undefined) return undefined;
    content += `${content === '' ? '' : '\n\n'}## ${String(facts.model)}\n\n`;
    const offset = content.length;
    content += text;
    return { offset };
  });
  return { content, offsets };
}

function titleOf(text: string): string {
  const line = text.slice(0, 400).replace(/\s+/g, ' ').trim();
  return line.length <= 80 ? line : `${safeCut(line, 79)}…`;
}
