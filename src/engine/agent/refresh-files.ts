import type { TextFile } from '../../core/file.ts';
import type { Mask } from '../../core/ports.ts';
import { cutMiddle, printablePath } from '../../core/text.ts';
import { checkFile, type KnownFile } from '../../files/refresh.ts';
import { isSkip } from '../../files/skip.ts';
import { unifiedDiff } from '../../workspace/diff.ts';
import { readFile } from '../../workspace/read-file.ts';
import type { Sandbox } from '../../workspace/sandbox.ts';
import type { Refresher } from '../modes/agent/agent.ts';

export interface RefreshParts {
  sandbox: Sandbox;
  mask: Mask;
  /** What masks are keyed by: the run. */
  scope: string;
  maxBytes: number;
  signal: AbortSignal;
}

/** Files of so many lines are shown whole when they changed; of others, what changed. */
const wholeLines = 200;
const mostFiles = 100;
const longestChange = 40_000;

/** Watches the files that a model was shown: a change by the run itself or by anybody else is told once. */
export function createRefresher(parts: RefreshParts): Refresher {
  const known = new Map<string, KnownFile & { text: string }>();
  const options = { maxBytes: parts.maxBytes, signal: parts.signal };
  const masked = async ({ path, size, mtimeMs, sha256, text }: TextFile) => ({
    ...{ path, size, mtimeMs, sha256 },
    text: (await parts.mask(text, parts.scope)).text,
  });

  async function change(path: string, before: KnownFile & { text: string }): Promise<string | undefined> {
    const found = await checkFile(parts.sandbox, before, options);
    if (found === 'unchanged') return undefined;
    if (found === 'deleted' || 'skip' in found) {
      known.delete(path);
      return found === 'deleted' ? `--- ${printablePath(path)}: deleted` : undefined;
    }
    const now = await masked(found.changed);
    known.set(path, now);
    return now.text === before.text ? undefined : told(path, before.text, now.text, found.changed.lines);
  }

  return {
    async saw(path) {
      const file = await readFile(parts.sandbox, path, options);
      if (isSkip(file)) return;
      known.delete(path);
      known.set(path, await masked(file));
      const [oldest] = known.keys();
      if (known.size > mostFiles && oldest !== undefined) known.delete(oldest);
    },
    async changes() {
      const changes: { path: string; text: string }[] = [];
      for (const [path, before] of [...known]) {
        const text = await change(path, before);
        if (text !== undefined) changes.push({ path, text });
      }
      return changes;
    },
  };
}

function told(path: string, before: string, now: string, lines: number): string {
  const name = printablePath(path);
  const diff = lines <= wholeLines ? undefined : unifiedDiff(path, before, now);
  const body = diff === undefined ? `--- ${name}: now\n${now}` : `--- ${name}: what changed\n${diff}`;
  return cutMiddle(body, longestChange);
}
