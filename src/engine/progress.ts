import type { Clock } from '../core/ports.ts';
import type { ProgressUpdate } from '../core/tool-host.ts';

/** Tells the client how a call is getting on: each stage at once, the text that streams in every few seconds. */
export interface Progress {
  stage(message: string): void;
  streamed(delta: string): void;
}

/** Takes what is to be told. */
export type Report = (update: ProgressUpdate) => void;

const everyMs = 5_000;

export function createProgress(clock: Clock, report: Report): Progress {
  let step = 0;
  let current = '';
  let chars = 0;
  let last = Number.NEGATIVE_INFINITY;
  const tell = (message: string) => {
    last = clock.monotonic();
    report({ progress: ++step, message });
  };
  return {
    stage(message) {
      current = message;
      tell(message);
    },
    streamed(delta) {
      chars += delta.length;
      if (clock.monotonic() - last >= everyMs) tell(`${current}: about ${Math.ceil(chars / 4)} tokens so far`);
    },
  };
}
