import type { ErrorCode } from './error.ts';
import type { Usage } from './usage.ts';

/** What happened, told to whoever watches. Texts are masked before any sink writes them. */
export type AppEvent =
  | { type: 'call.start'; reqId: string; tool: string; owner: string; client?: string }
  | { type: 'call.stage'; reqId: string; tool: string; stage: string }
  | { type: 'call.end'; reqId: string; tool: string; status: string; elapsedMs: number; code?: ErrorCode }
  | {
      type: 'model.attempt';
      reqId: string;
      /** Counted from 1 within the call. */
      attempt: number;
      tool: string;
      provider: string;
      model: string;
      elapsedMs: number;
      outcome: 'ok' | 'retry' | 'failed' | 'cancelled';
      class?: string;
      status?: number;
      usage?: Usage;
      /** Milliseconds until the next attempt, when there is one. */
      nextInMs?: number;
    }
  | { type: 'files.read'; reqId: string; tool: string; embedded: string[]; skipped: { path: string; code: string }[] }
  | { type: 'thread.compacted'; reqId: string; thread: string; upToSeq: number; window: number }
  | { type: 'warning'; reqId?: string; where: string; message: string };
