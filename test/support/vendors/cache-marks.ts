import { anthropicRefusal } from './anthropic-refusal.ts';
import type { Refusal } from './refusal.ts';
import { recordOf, recordsOf } from './wire-values.ts';

const mostMarks = 4;

/** All `cache_control` values of a request, in the order in which the vendor reads it: tools, system, messages. */
export function cacheMarksOf(body: Record<string, unknown>): unknown[] {
  const blocks = [
    ...recordsOf(body.tools),
    ...recordsOf(body.system),
    ...recordsOf(body.messages).flatMap(message =>
      recordsOf(message.content).flatMap(block => [...recordsOf(block.content), block]),
    ),
    // The mark of the request as a whole stands for one at its last block.
    { cache_control: body.cache_control },
  ];
  return blocks.map(block => block.cache_control).filter(mark => mark != null);
}

export function checkCacheMarks(marks: readonly unknown[]): Refusal | undefined {
  if (marks.length > mostMarks)
    return anthropicRefusal(
      `A maximum of ${mostMarks} blocks with cache_control may be provided. Found ${marks.length}.`,
    );
  let short = false;
  for (const mark of marks.map(recordOf)) {
    if (mark.type !== 'ephemeral') return anthropicRefusal("cache_control.type: Input should be 'ephemeral'");
    if (mark.ttl !== undefined && mark.ttl !== '5m' && mark.ttl !== '1h')
      return anthropicRefusal("cache_control.ephemeral.ttl: Input should be '5m' or '1h'");
    if (mark.ttl === '1h' && short)
      return anthropicRefusal("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block");
    short ||= mark.ttl !== '1h';
  }
  return undefined;
}
