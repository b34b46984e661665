import { isAppError } from '../../../core/errors.ts';
import type { JsonObject } from '../../../core/json.ts';
import { safeCut } from '../../../core/text.ts';
import type { Turn } from '../../../core/thread.ts';
import { estimateTokens } from '../../../core/tokens.ts';
import { documentTokens } from '../../answer/cap.ts';
import { capSlots, documentWith, type Kept, type SlotEntry } from '../../fanout/cap-slots.ts';
import type { Fan } from '../../fanout/fan.ts';
import { metadataOf } from '../../fanout/response-of.ts';

const note =
  'Some answers are longer than a reply takes. Read on: call "threads" with action "read", this continuation_id and a slot\'s next_cursor as cursor. "prompt_from_file_to_file" writes answers into files instead.';

/**
 * The keys of a reply around its slots: `result`, and what goes with it. Answers that are too long for one reply were paid
 * for all the same: only then a thread is written, which has them whole.
 */
export async function replyWith(
  fan: Fan,
  entries: readonly SlotEntry[],
  make: (slots: JsonObject[]) => JsonObject,
): Promise<JsonObject> {
  const { replyTokens } = fan.options;
  const document = { ...documentWith(entries, make), metadata: metadataOf(fan) };
  if (documentTokens(document) <= replyTokens) return document;
  const { kept, warnings } = await keep(fan, entries);
  const thread = kept.find(place => place)?.thread;
  const metadata = metadataOf(fan, warnings);
  const full = (slots: JsonObject[]) => ({
    ...make(slots),
    ...(thread !== undefined && { continuation_id: thread, truncated: { note } }),
    metadata,
  });
  return capSlots(entries, full, replyTokens, kept);
}

async function keep(
  fan: Fan,
  entries: readonly SlotEntry[],
): Promise<{ kept: readonly (Kept | undefined)[]; warnings: string[] }> {
  const { options, call, text, spent } = fan;
  const { threads, compose } = options;
  const { content, offsets } = joined(entries);
  const { owner, root } = call.request.principal;
  const blank = threads.start({ owner, workspace: root }, call.tool.name);
  const shared = { timestamp: compose.clock.now(), exchange: compose.newExchange(), toolName: call.tool.name };
  const none = { files: [], images: [], citations: [] };
  const asked = entries.flatMap(({ facts, text: answer }) => (answer === undefined ? [] : [String(facts.model)]));
  const turns: Turn[] = [
    { ...shared, ...none, seq: 1, role: 'user', content: text, tokens: estimateTokens(text) },
    {
      ...shared,
      ...none,
      seq: 2,
      role: 'assistant',
      content,
      modelMetadata: { asked, usage: spent.usage, costUsd: spent.costUsd },
      tokens: estimateTokens(content),
    },
  ];
  const tokens = spent.usage.input + spent.usage.output;
  try {
    const started = { ...blank, title: titleOf(text) };
    const thread = await threads.add(started, shared.exchange, {
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
function joined(entries: readonly SlotEntry[]): { content: string; offsets: ({ offset: number } | undefined)[] } {
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
