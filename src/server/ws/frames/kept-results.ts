import type { Clock } from '../../../domain/ports.ts';
import type { ResultFrame } from './frames.ts';

export interface KeptRules {
  /** Milliseconds that a result is kept. */
  resultMs: number;
  /** Characters of one session's results; the oldest go first. */
  mostCharacters: number;
}

export interface KeptResult {
  /** What was called, as one text: the same request_id for something else is another call. */
  same: string;
  frame: ResultFrame;
}

/** Finished results of one session by request_id, for a client that did not get them. */
export interface KeptResults {
  keep(requestId: string, result: KeptResult): void;
  find(requestId: string): KeptResult | undefined;
  count(): number;
}

const mostResults = 1_024;

export function createKeptResults(rules: KeptRules, clock: Pick<Clock, 'monotonic'>): KeptResults {
  // The oldest stands first.
  const kept = new Map<string, KeptResult & { size: number; until: number }>();
  let size = 0;

  function drop(requestId: string): void {
    size -= kept.get(requestId)?.size ?? 0;
    kept.delete(requestId);
  }

  function tidy(): void {
    const now = clock.monotonic();
    for (const [id, { until }] of kept) {
      if (until > now && size <= rules.mostCharacters && kept.size <= mostResults) return;
      drop(id);
    }
  }

  return {
    keep(requestId, result) {
      drop(requestId);
      const entry = { ...result, size: sizeOf(result.frame), until: clock.monotonic() + rules.resultMs };
      kept.set(requestId, entry);
      size += entry.size;
      tidy();
    },
    find(requestId) {
      tidy();
      return kept.get(requestId);
    },
    count() {
      tidy();
      return kept.size;
    },
  };
}

function sizeOf({ outputs, text = '' }: ResultFrame): number {
  return outputs.reduce((sum, output) => sum + output.text.length, text.length);
}
