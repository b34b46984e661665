import type { JsonObject } from '../../../core/json.ts';
import { isRecord, numberIn, textIn } from '../../../core/json.ts';
import { noUsage, type Usage } from '../../../core/usage.ts';
import type { ConnectAround } from '../../provider.ts';
import { type PromptPart, partsDigest } from './prompt-parts.ts';

/** Where a thread's session with one program stands. */
export interface ProgramSession {
  /** The program's own id. */
  id: string;
  /** How many of the prompt's stable parts it knows, its own last answer not counted. */
  parts: number;
  /** Over these parts. */
  digest: string;
  /** What the session had used when it answered last. */
  used: Usage;
}

/** One program that answers in one thread, working in one directory. */
export interface SessionPlace {
  thread: string;
  program: string;
  root: string;
}

const keptMs = 30 * 24 * 3_600_000;

/**
 * The sessions that programs keep, by the threads they belong to. One is gone on with only where the prompt begins with
 * exactly what it knows: after a fork, a compaction or a move to another directory a new one starts, with the whole thread.
 */
export function programSessions({ state }: Pick<ConnectAround, 'state'>) {
  return {
    async find(place: SessionPlace, stable: readonly PromptPart[]): Promise<ProgramSession | undefined> {
      const session = sessionIn(await state.get(keyOf(place)));
      if (!session) return undefined;
      const isKnown = partsDigest(stable.slice(0, session.parts)) === session.digest;
      return isKnown && stable[session.parts]?.role === 'assistant' ? session : undefined;
    },
    async keep(place: SessionPlace, stable: readonly PromptPart[], id: string, used: Usage): Promise<void> {
      const session = { id, parts: stable.length, digest: partsDigest(stable), used: { ...used } };
      await state.change(keyOf(place), keptMs, () => session);
    },
    async drop(place: SessionPlace): Promise<void> {
      await state.change(keyOf(place), keptMs, () => undefined);
    },
  };
}

function keyOf({ thread, program, root }: SessionPlace): string {
  return `cli/${thread}/${program}/${partsDigest([{ role: 'user', text: root }]).slice(0, 16)}`;
}

/** What was stored may have been written by another version. */
function sessionIn(value: JsonObject | undefined): ProgramSession | undefined {
  const id = textIn(value?.id);
  const digest = textIn(value?.digest);
  if (id === '' || digest === '') return undefined;
  return { id, digest, parts: numberIn(value?.parts), used: usageIn(value?.used) };
}

function usageIn(value: unknown): Usage {
  if (!isRecord(value)) return noUsage;
  const { input, output, reasoning, cacheRead, cacheWrite } = value;
  return {
    input: numberIn(input),
    output: numberIn(output),
    reasoning: numberIn(reasoning),
    cacheRead: numberIn(cacheRead),
    cacheWrite: numberIn(cacheWrite),
  };
}
