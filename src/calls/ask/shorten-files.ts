import type { Sha256 } from '../../core/ids.ts';
import { outlineText } from '../../engine/condense/outline-text.ts';
import { summariseText } from '../../engine/condense/summarise.ts';
import { languageOf } from '../../files/outline/language.ts';
import type { FoundSymbol } from '../../files/work/job.ts';
import type { WorkPool } from '../../workspace/workers/worker-pool.ts';

/** A file in place of which something shorter stands. */
export interface Condensed {
  form: 'outline' | 'summary';
  text: string;
}

/** What may be shown of a file. */
export interface ShownFile {
  path: string;
  text: string;
  /** Of the text. */
  hash: Sha256;
}

/** Makes files short: what source declares, what prose says. */
export interface Condenser {
  /** Undefined when `maxTokens` is too little for this file. */
  condense(file: ShownFile, maxTokens: number, signal: AbortSignal): Promise<Condensed | undefined>;
  /** What a source file declares; undefined where nobody here can read it. */
  symbols(file: ShownFile, signal: AbortSignal): Promise<FoundSymbol[] | undefined>;
}

/** Files whose structure is remembered: a thread asks for the same ones again and again. */
const remembered = 500;
/** Beyond this a parse takes seconds; such files are generated or data. */
const mostParsed = 1024 * 1024;
/** A file of fewer lines has nothing to leave out. */
const leastLines = 5;

export function createCondenser(pool: WorkPool): Condenser {
  const structures = new Map<string, FoundSymbol[]>();
  const summaries = new Map<string, string>();

  async function symbols({ path, text, hash }: ShownFile, signal: AbortSignal): Promise<FoundSymbol[] | undefined> {
    const language = languageOf(path);
    if (!language || text.length > mostParsed) return undefined;
    const known = structures.get(hash);
    if (known) return known;
    const found = await pool.symbols({ path, language, text }, signal);
    keep(structures, hash, found);
    return found;
  }

  async function summary({ hash, text }: ShownFile, maxTokens: number, signal: AbortSignal) {
    // Rounded down, so that a little more or less room finds the same summary.
    const room = 2 ** Math.floor(Math.log2(Math.max(1, maxTokens)));
    const key = `${hash} ${room}`;
    const known = summaries.get(key);
    if (known !== undefined) return known;
    const made = await summariseText(text, room, signal);
    if (made !== undefined) keep(summaries, key, made);
    return made;
  }

  return {
    symbols,
    async condense(file, maxTokens, signal) {
      const { text } = file;
      if (text.split('\n', leastLines + 1).length <= leastLines) return undefined;
      const declared = await symbols(file, signal);
      const outline = declared && outlineText(text, declared, maxTokens);
      if (outline !== undefined) return { form: 'outline', text: outline };
      const said = await summary(file, maxTokens, signal);
      return said === undefined ? undefined : { form: 'summary', text: said };
    },
  };
}

function keep<Value>(cache: Map<string, Value>, key: string, value: Value): void {
  cache.set(key, value);
  for (const oldest of cache.keys()) {
    if (cache.size <= remembered) return;
    cache.delete(oldest);
  }
}
