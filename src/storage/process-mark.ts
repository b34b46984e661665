import { readFileSync, readlinkSync, statSync } from 'node:fs';

/** What can be told of the process behind a mark. */
export type ProcessState = 'running' | 'gone' | 'unknown';

/** Processes as the others on their machine can recognise them. */
export type ProcessMarks = ReturnType<typeof processMarks>;

/**
 * Reads the system's own account of its processes. A number alone proves nothing: it is given out again, and means another
 * process in another container; so the boot, the numbering's own id, the user and the time of the start belong to a mark.
 */
export function processMarks(folder = '/proc') {
  const place = placeOf(folder);
  const self = place === undefined ? undefined : processStat(folder, 'self');
  return {
    /** This process; undefined where the system does not tell enough. */
    own: place !== undefined && self ? `${place} ${self.pid} ${self.started}` : undefined,
    /** `unknown` for a process of another machine, boot, container or user, of which nothing can be said from here. */
    stateOf(mark: string): ProcessState {
      const [, at, pid, started] = /^(.+) (\d+) (\d+)$/.exec(mark) ?? [];
      if (place === undefined || at !== place || pid === undefined) return 'unknown';
      const found = processStat(folder, pid);
      return !found || found.started !== started || /[ZX]/.test(found.state) ? 'gone' : 'running';
    },
  };
}

/** A holder as a store keeps it: with the mark of this process, where there is one. */
export const markedHolder = ({ own }: ProcessMarks, holder: string): string =>
  own === undefined ? holder : `${holder} ${own}`;

/** Of the process whose mark stands behind a holder. */
export const stateOfHolder = (marks: ProcessMarks, holder: string): ProcessState =>
  marks.stateOf(holder.slice(holder.indexOf(' ') + 1));

/** The process with an exclusive lock on a byte of a file, and what keeps it from going on; undefined where nobody can tell. */
export function lockHolder(file: string, byte: number): { pid: string; isStopped: boolean } | undefined {
  try {
    const lock = new RegExp(` WRITE (\\d+) \\S+:${statSync(file).ino} ${byte} `);
    const [, pid] = lock.exec(readFileSync('/proc/locks', 'utf8')) ?? [];
    return pid === undefined ? undefined : { pid, isStopped: /[Tt]/.test(processStat('/proc', pid)?.state ?? '') };
  } catch {
    return undefined;
  }
}

/** Where process numbers mean the same: one boot of one machine, one numbering, one user. */
function placeOf(folder: string): string | undefined {
  try {
    const boot = readFileSync(`${folder}/sys/kernel/random/boot_id`, 'utf8').trim();
    return `${boot} ${readlinkSync(`${folder}/self/ns/pid`)} ${statSync(`${folder}/self`).uid}`;
  } catch {
    // Not Linux, or closed to us: leases then end by their time alone.
    return undefined;
  }
}

/** `state`: one letter; `Z` and `X` have ended. `started`: ticks since the boot, which tell a process from one with its number. */
function processStat(folder: string, pid: string) {
  try {
    const text = readFileSync(`${folder}/${pid}/stat`, 'utf8');
    // The name stands in brackets and may hold anything; the last bracket ends it.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { pid: text.slice(0, text.indexOf(' ')), state: fields[0] ?? '', started: fields[19] ?? '' };
  } catch {
    // No such process; our own user's are never hidden from us.
    return undefined;
  }
}
