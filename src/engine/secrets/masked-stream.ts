import type { Mask } from '../../domain/ports.ts';

/** An answer as it arrives, with its secrets masked. */
export interface MaskedStream {
  push(delta: string): void;
  /** Passes on what was held back; resolves once all of it is out. */
  end(): Promise<void>;
}

const keyBegin = '-----BEGIN';
const keyEnd = /-----END[^\n]*-----/;

/**
 * Passes whole lines on: within one, a secret may still be growing, or be known only by what stands before it. A private key is
 * held back until it is whole.
 */
export function createMaskedStream(mask: Mask, scope: string, onText: (text: string) => void): MaskedStream {
  let held = '';
  let passed = Promise.resolve();

  function pass(text: string): void {
    // One after the other, whichever is masked first.
    passed = passed.then(async () => onText((await mask(text, scope)).text));
    // `end` throws it; until then it is nobody's.
    passed.catch(() => {});
  }

  return {
    push(delta) {
      held += delta;
      const key = held.lastIndexOf(keyBegin);
      const open = key !== -1 && !keyEnd.test(held.slice(key));
      const line = held.lastIndexOf('\n', open ? key : undefined);
      if (line === -1 || !delta.includes('\n')) return;
      pass(held.slice(0, line + 1));
      held = held.slice(line + 1);
    },
    async end() {
      if (held !== '') pass(held);
      held = '';
      await passed;
    },
  };
}
