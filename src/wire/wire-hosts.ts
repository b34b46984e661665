import { isAbsolute } from 'node:path';
import { AppError, isAppError, securityError } from '../domain/error.ts';
import type { Mask } from '../domain/ports.ts';
import type { Permissions } from '../domain/request.ts';
import { printablePath } from '../domain/text.ts';
import { defaultRoots } from '../files/default-roots.ts';
import { createSandbox } from '../files/sandbox.ts';
import { isSkip } from '../files/skip.ts';
import type { Front } from './wire-front.ts';
import { type SharedParts, type WiredHost, wireHost } from './wire-host.ts';
import { unlimited } from './wire-offer.ts';

/** One host for all callers with the same permissions. */
export interface Hosts {
  /** The operator's own, with everything. */
  own: WiredHost;
  /** Rejects with an `AppError` of kind `security` where a caller may not read the project that he declares. */
  of(caller: CallerPlace): Promise<{ wired: WiredHost; root: string }>;
  settle(hurry?: AbortSignal): Promise<void>;
  flush(): Promise<void>;
}

/** What a caller may do, and from where he does it. */
export interface CallerPlace {
  permissions: Permissions;
  /** The project that he declares, an absolute path; absent: the first one that he may read. */
  declared?: string | undefined;
  /** He may declare any project of this machine, as long as the operator set no roots. */
  free: boolean;
}

interface Entry {
  wired: WiredHost;
  /** Under way. */
  calls: number;
}

/** More than one daemon has projects and permissions at a time; the one used least lately makes room. */
const mostKept = 256;

export function createHosts(shared: SharedParts, { root: productRoot, offered }: Front): Hosts {
  const own = wireHost(shared, unlimited, offered);
  // The one used least lately stands first.
  const kept = new Map<string, Entry>();
  const busy = new Set<Entry>();
  const leaving = new Set<Promise<void>>();

  function entryFor(permissions: Permissions): Entry {
    const { toolsets, allow, deny, readOnly, maxCostPerDay, roots } = permissions;
    const key = JSON.stringify([toolsets, allow, deny, readOnly, maxCostPerDay, roots].map(part => part ?? null));
    const entry = kept.get(key) ?? counted(wireHost(shared, permissions), busy);
    kept.delete(key);
    kept.set(key, entry);
    const idle = kept.size > mostKept ? [...kept].find(([, { calls }]) => calls === 0) : undefined;
    if (idle) leave(...idle);
    return entry;
  }

  function leave(key: string, { wired }: Entry): void {
    kept.delete(key);
    // Calls whose callers are gone have their grace.
    const over: Promise<void> = wired
      .settle()
      .then(wired.flush)
      .finally(() => leaving.delete(over));
    leaving.add(over);
  }

  const all = () => [own, ...[...new Set([...kept.values(), ...busy])].map(({ wired }) => wired)];
  return {
    own,
    async of(caller) {
      const place = await placeOf(shared, caller, productRoot).catch(error => refuse(shared.mask, caller, error));
      const { permissions } = caller;
      const isOwn =
        place.roots === undefined && Object.values(permissions).every(part => part === undefined || part === false);
      if (isOwn) return { wired: own, root: place.root };
      const { wired } = entryFor({ ...permissions, ...(place.roots && { roots: place.roots }) });
      return { wired, root: place.root };
    },
    async settle(hurry) {
      await Promise.all([...all().map(wired => wired.settle(hurry)), ...leaving]);
    },
    async flush() {
      await Promise.all(all().map(wired => wired.flush()));
    },
  };
}

/** A host that was let go may still be used by a session: it counts as long as it works. */
function counted(wired: WiredHost, busy: Set<Entry>): Entry {
  const { host } = wired;
  const entry: Entry = {
    calls: 0,
    wired: {
      ...wired,
      host: {
        ...host,
        async call(request, signal) {
          entry.calls += 1;
          busy.add(entry);
          try {
            return await host.call(request, signal);
          } finally {
            entry.calls -= 1;
            if (entry.calls === 0) busy.delete(entry);
          }
        },
      },
    },
  };
  return entry;
}

/** The folders that a caller may read, as they really are, and his project. */
async function placeOf(
  { files, config, around }: SharedParts,
  { permissions, declared, free }: CallerPlace,
  productRoot: string,
): Promise<{ roots?: readonly string[]; root: string }> {
  const own = permissions.roots;
  const located = await Promise.all((own ?? []).map(path => files.sandbox.locate(path)));
  const within = located.flatMap(found => (isSkip(found) || found.kind !== 'directory' ? [] : [found.path]));
  if (declared === undefined)
    return own ? { roots: within, root: within[0] ?? own[0] ?? productRoot } : { root: productRoot };
  if (!isAbsolute(declared)) throw noProject(declared, 'It is no absolute path.');
  const open = (roots: readonly string[]) => createSandbox({ roots, allowSecrets: false });
  if (free && !own && !config.values.app.roots?.length) {
    const chosen = await defaultRoots({ explicit: [], projectRoot: declared, cwd: productRoot, home: around.homeDir });
    if (chosen.roots.length === 0) throw noProject(declared, chosen.reason);
    return { roots: [await open(chosen.roots).assertWithin(declared)], root: declared };
  }
  const sandbox = own ? open(within) : files.sandbox;
  return { roots: [await sandbox.assertWithin(declared)], root: declared };
}

/** What a caller declares may hold anything; the refusal names it. */
async function refuse(mask: Mask, { declared = '' }: CallerPlace, error: unknown): Promise<never> {
  const { text } = await mask(declared, 'daemon');
  if (text === declared || !isAppError(error)) throw error;
  throw new AppError(error.kind, 'What you declare as your project is no folder for you.', error.details);
}

function noProject(path: string, reason: string) {
  return securityError(`${printablePath(path)} can't be your project: ${reason}`, {
    class: 'root',
    next: 'Declare the absolute path of a project that this server may read, or none.',
  });
}
