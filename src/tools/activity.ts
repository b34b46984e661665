import { z } from 'zod';
import { defineAction } from '../calls/tool.ts';
import { type JsonObject, jsonOf, snakeCased } from '../core/json.ts';
import type { RecentEvent } from '../core/ports.ts';

const usualLimit = 50;
const maxEvents = 1_000;
/** What events may take of a reply. */
const share = 0.8;

export const activity = defineAction({
  name: 'activity',
  title: 'Activity',
  description: 'Show recent events of this process: calls, model attempts, errors.',
  toolset: 'ops',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: {
    filter: z.string().describe('Words an event must contain, e.g. a req_id').optional(),
    limit: z.int().min(1).optional(),
  },
  renamed: { lines: 'limit' },
  async run(args, { ops, replyTokens }) {
    const words = (args.filter ?? '').split(/\s+/).filter(Boolean);
    const limit = Math.min(maxEvents, args.limit ?? usualLimit);
    const found = ops.recent({ words, limit });
    const events = await newestWithin(found.map(documentOf), replyTokens * share);
    const left = found.length - events.length;
    const left_out = left > 0 ? `${left} older ones do not fit; a filter finds them.` : undefined;
    return { status: 'success', events, left_out };
  },
});

/** Newest last, as many as there is room for. */
async function newestWithin(events: readonly JsonObject[], tokens: number): Promise<JsonObject[]> {
  const { estimateTokens } = await import('../core/tokens.ts');
  let room = tokens;
  const from = events.findLastIndex(event => {
    room -= estimateTokens(JSON.stringify(event)) + 2;
    return room < 0;
  });
  return events.slice(from + 1);
}

const documentOf = ({ at, event }: RecentEvent): JsonObject =>
  jsonOf(snakeCased(event, { at: new Date(at).toISOString() }));
