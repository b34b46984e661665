import { turnOf } from '../../../calls/ask/prepare-context.ts';
import { documentTokens, fitTexts } from '../../../calls/format-reply.ts';
import { errorOf } from '../../../calls/reply.ts';
import { isAppError } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import { safeCut } from '../../../core/text.ts';
import { estimateTokens } from '../../../core/tokens.ts';
import { answerFacts, metadataOf, nameOf, type TargetResponse } from './ask-many.ts';
import type { FanoutRun } from './targets.ts';

/** An entry of a reply, and the answer that stands in it under `response`. */
export interface TargetEntry {
  facts: JsonObject;
  text?: string | undefined;
}

/** Where the whole of an entry's answer is kept: a turn of a thread, and where in it the answer begins. */
interface Kept {
  thread: string;
  seq: number;
  offset: number;
}

/** An entry with as much of its answer as is shown; a cut one has the cursor to read on, where the whole is kept. */
function entryOf({ facts, text }: TargetEntry, shown: string, kept?: Kept): JsonObject {
  if (text === undefined) return facts;
  const { model, requested, ...rest } = facts;
  const entry = { model, requested, response: shown, ...rest };
  if (shown.length === text.length) return entry;
  const place = kept && {
    artifact: `polylogue://threads/${kept.thread}/turns/${kept.seq}`,
    next_cursor: `${kept.seq}:${kept.offset + shown.length}`,
  };
  return { ...entry, truncated: { total_tokens: estimateTokens(text), shown_characters: shown.length, ...place } };
}

/** A response as replies show it, without the answer's text. */
export function factsOf(response: TargetResponse): JsonObject {
  const { target, outcome } = response;
  const corrected = 'candidates' in target.who && target.who.corrected ? { ...target.who.corrected } : undefined;
  const facts = { model: nameOf(response), requested: target.model, model_corrected: corrected };
  if ('error' in outcome) return { ...facts, ...listed(target.warnings), error: errorOf(outcome.error) };
  const { answer } = outcome;
  return {
    ...facts,
    ...answerFacts(answer),
    ...listed([...target.warnings, ...answer.warnings]),
    citations: answer.citations.length > 0 ? answer.citations.map(citation => ({ ...citation })) : undefined,
  };
}

function listed(warnings: readonly string[]): JsonObject {
  return { warnings: warnings.length > 0 ? [...warnings] : undefined };
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
  const texts = entries.map(({ text = '' }) => text);
  const whole = { ...make(entries.map(entry => entryOf(entry, entry.text ?? ''))), metadata: metadataOf(run) };
  if (documentTokens(whole) <= replyTokens) return whole;
  const { kept, warnings } = await keep(run, entries);
  const thread = kept.find(place => place)?.thread;
  const rest = {
    ...(thread !== undefined && { continuation_id: thread, truncated: { note } }),
    metadata: metadataOf(run, warnings),
  };
  return fitTexts(texts, replyTokens, shown => ({
    ...make(entries.map((entry, index) => entryOf(entry, shown[index] ?? '', kept[index]))),
    ...rest,
  }));
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
