import { hash } from 'node:crypto';
import { canonicalJson } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { CallFrame, FrameRules, ResultFrame } from './protocol.ts';

export interface KeptResult {
  /** What was called, as one text: the same request_id for something else is another call. */
  same: string;
  frame: ResultFrame;
}

/** Room for the results of all sessions together. */
export type ResultStore = ReturnType<typeof createResultStore>;

export function createResultStore(maxCharacters: number) {
  let left = maxCharacters;
  return {
    /** False when there is no room for so many characters. */
    take(size: number) {
      if (size > left) return false;
      left -= size;
      return true;
    },
    give(size: number) {
      left += size;
    },
  };
}

const maxResults = 1_024;

type KeptRules = Pick<FrameRules, 'resultMs' | 'maxCharacters'>;

/** Finished results of one session by request_id, for a client that did not get them. */
export function createKeptResults(rules: KeptRules, clock: Pick<Clock, 'monotonic' | 'after'>, store: ResultStore) {
  // The oldest stands first.
  const kept = new Map<string, KeptResult & { size: number; until: number }>();
  let size = 0;
  let stopTimer: (() => void) | undefined;

  function drop(requestId: string): void {
    const entry = kept.get(requestId);
    if (!entry) return;
    size -= entry.size;
    store.give(entry.size);
    kept.delete(requestId);
  }

  /** Drops what is too old, and the oldest until `more` characters have room; then waits for the next to be too old. */
  function tidy(more = 0): void {
    const now = clock.monotonic();
    for (const [id, { until }] of kept) {
      if (until > now && size + more <= rules.maxCharacters && kept.size <= maxResults) break;
      drop(id);
    }
    stopTimer?.();
    const [oldest] = kept.values();
    stopTimer = oldest && clock.after(oldest.until - now, tidy);
  }

  return {
    keep(requestId: string, result: KeptResult) {
      drop(requestId);
      const { outputs, text = '' } = result.frame;
      const more = outputs.reduce((sum, output) => sum + output.text.length, text.length);
      tidy(more);
      if (more > rules.maxCharacters || !store.take(more)) return;
      size += more;
      kept.set(requestId, { ...result, size: more, until: clock.monotonic() + rules.resultMs });
      tidy();
    },
    find: (requestId: string): KeptResult | undefined => kept.get(requestId),
    count: () => kept.size,
    clear() {
      for (const id of [...kept.keys()]) drop(id);
      tidy();
    },
  };
}

/** Hosts put the server's name behind that of a tool. */
const serverName = /[_-](?:exai[_-]ws|polylogue)$/i;

export const toolNameOf = (name: string): string => name.replace(serverName, '') || name;

/** The same for two frames that ask for the same, whatever the order of their keys. */
export const sameCall = ({ name, arguments: args, stream }: CallFrame): string =>
  hash('sha256', canonicalJson([toolNameOf(name), args ?? {}, stream === true]));
