import type { Mask } from '../../core/ports.ts';

/** An answer as it arrives, with its secrets masked. */
export interface MaskedStream {
  push(delta: string): void;
  /** Passes on what was held back; resolves once all of it is out. */
  end(): Promise<void>;
}

const keyBegin = '-----BEGIN';
const keyEnd = /-----END[^\n]*-----/;
/** A longer line is only passed on whole: each of its words means going through all before it. */
const longestLine = 8_192;

/**
 * Passes whole words on, each masked together with its line: a secret may be known only by what stands before it. The word that
 * is still growing is held back, and so is a private key until it is whole.
 */
export function createMaskedStream(mask: Mask, scope: string, onText: (text: string) => void): MaskedStream {
  /** The line that is not ended yet, and of its masked form what is out already. */
  let line = '';
  let out = '';
  let work = Promise.resolve();

  async function pass(text: string): Promise<void> {
    const masked = (await mask(text, scope, 'model')).text;
    // A secret turned out to have begun before: what is out is none of it, for it was masked with all that stood there.
    if (!masked.startsWith(out)) return;
    if (masked.length > out.length) onText(masked.slice(out.length));
    out = masked;
  }

  async function ended(text: string): Promise<void> {
    const masked = (await mask(text, scope, 'model')).text;
    const rest = masked.slice(commonLength(masked, out));
    if (rest !== '') onText(rest);
    out = '';
  }

  async function advance(): Promise<void> {
    const key = line.lastIndexOf(keyBegin);
    const isOpen = key !== -1 && !keyEnd.test(line.slice(key));
    const ready = isOpen ? line.slice(0, line.lastIndexOf('\n', key) + 1) : line;
    const lines = ready.lastIndexOf('\n') + 1;
    if (lines > 0) {
      await ended(ready.slice(0, lines));
      line = line.slice(lines);
    }
    if (isOpen || line.length > longestLine) return;
    const words = line.search(/\s\S*$/) + 1;
    if (words > 0) await pass(line.slice(0, words));
  }

  function then(step: () => Promise<void>): void {
    work = work.then(step);
    // `end` throws it; until then it is nobody's.
    work.catch(() => {});
  }

  return {
    push: delta =>
      then(async () => {
        line += delta;
        if (/\s/.test(delta)) await advance();
      }),
    async end() {
      then(() => ended(line));
      await work;
    },
  };
}

function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < b.length && a[length] === b[length]) length++;
  return length;
}
