import { isAbsolute } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { AppError, isAppError, securityError } from '../core/errors.ts';
import type { Mask } from '../core/ports.ts';
import { printablePath } from '../core/text.ts';
import type { Permissions } from '../core/tool-host.ts';
import { holdingInCalls } from '../server/access/admission.ts';
import { isSkip } from '../workspace/paths.ts';
import { defaultRoots } from '../workspace/roots.ts';
import { createSandbox, type Sandbox } from '../workspace/sandbox.ts';
import type { Startup } from './compose-front.ts';
import { composeHost, type HostServices, type SharedParts, unlimited } from './compose-host.ts';

/** What a caller may do, and from where he does it. */
export interface CallerPlace {
  permissions: Permissions;
  /** The project that he declares, an absolute path; absent: the first one that he may read. */
  declared?: string | undefined;
  /** The directories that his client lists, as `file://` addresses. What can be none of his roots is left out; all of it: as if he declared none. */
  listed?: readonly string[] | undefined;
  /** He may declare any project of this machine, as long as the operator set no roots. */
  free: boolean;
  /** The process serves nobody else: what it may do beside reading roots, he may. */
  isAlone?: boolean;
}

/**
 * The directories that a caller may read (absent: the process's), as they really are, and his project, else `productRoot`. Rejects with
 * kind `security` where he may not read what he declares. `warn` hears of what his client lists in vain.
 */
async function placeOf(shared: SharedParts, caller: CallerPlace, productRoot: string, warn: (message: string) => void) {
  const { config, files, fileContext } = shared;
  const { permissions, declared, listed, free } = caller;
  const own = permissions.roots;
  // The directories of his token that are there.
  const located = await Promise.all((own ?? []).map(path => files.sandbox.locate(path)));
  const within = located.flatMap(found => (isSkip(found) || found.kind !== 'directory' ? [] : [found.path]));
  const sandbox = own ? open(within) : files.sandbox;
  const mayBeAnywhere = free && !own && !config.values.app.roots?.length;
  const roots = listed ? await rootsOfList(listed, fileContext, mayBeAnywhere ? {} : { within: sandbox }, warn) : [];
  if (roots[0] !== undefined)
    return !own && isDeepStrictEqual(roots, sandbox.roots) ? { root: roots[0] } : { roots, root: roots[0] };
  if (declared === undefined)
    return own ? { roots: within, root: within[0] ?? own[0] ?? productRoot } : { root: productRoot };
  if (!isAbsolute(declared)) throw noProject(declared, 'It is no absolute path.');
  if (!mayBeAnywhere) return { roots: [await sandbox.assertWithin(declared)], root: declared };
  const home = fileContext.homeDir;
  const { roots: wanted, reason } = await defaultRoots({ explicit: [], projectRoot: declared, cwd: productRoot, home });
  const project = open(wanted);
  if (project.roots.length === 0) throw noProject(declared, wanted.length > 0 ? 'There is no such directory.' : reason);
  return { roots: [await project.assertWithin(declared)], root: declared };
}

/** What a client lists, as far as it can be a root. */
async function rootsOfList(
  listed: readonly string[],
  { homeDir: home, platform }: SharedParts['fileContext'],
  bounds: { within?: Sandbox },
  warn: (message: string) => void,
) {
  const { listedRoots } = await import('../workspace/client-roots.ts');
  const { roots, refused } = await listedRoots(listed, { home, isWindows: platform === 'win32', ...bounds });
  for (const { address, why } of refused) warn(`The client lists ${printablePath(address)} as a root: ${why}.`);
  return roots;
}

const open = (roots: readonly string[]) => createSandbox({ roots, allowSecrets: false });

/** What a caller declares may hold anything; the refusal names it. */
async function refuse(mask: Mask, { declared = '' }: CallerPlace, error: unknown): Promise<never> {
  const { text } = await mask(declared, 'daemon');
  if (text === declared || !isAppError(error)) throw error;
  throw new AppError(error.kind, 'You may not use the directory that you declare as your project.', error.details);
}

const noProject = (path: string, reason: string) =>
  securityError(`${printablePath(path)} cannot be your project: ${reason}`, {
    class: 'root',
    next: 'Declare the absolute path of a project that this server may read, or none.',
  });

/** One host for all callers with the same permissions. */
export type Hosts = ReturnType<typeof createHosts>;

interface Entry {
  services: HostServices;
  /** Under way. */
  calls: number;
}

/** More than one daemon has projects and permissions at a time; the one used least lately makes room. */
const maxKept = 256;

/** Different things that clients list and that can be no roots are told of, each once. */
const maxWarned = 256;

export function createHosts(shared: SharedParts, { root: productRoot }: Startup) {
  /** The operator's own, with everything. */
  const own = composeHost(shared, unlimited);
  // The one used least lately stands first.
  const kept = new Map<string, Entry>();
  const busy = new Set<Entry>();
  const leaving = new Set<Promise<void>>();

  const warned = new Set<string>();
  const warn = (message: string) => {
    if (warned.has(message) || warned.size >= maxWarned) return;
    warned.add(message);
    shared.emit({ type: 'warning', where: 'roots', message });
  };

  function entryFor(permissions: Permissions, isAlone: boolean): Entry {
    const { toolsets, allow, deny, readOnly, maxCostPerDay, roots } = permissions;
    const key = JSON.stringify([toolsets, allow, deny, readOnly, maxCostPerDay, roots, isAlone]);
    const entry = kept.get(key) ?? counted(composeHost(shared, permissions, isAlone), busy);
    kept.delete(key);
    kept.set(key, entry);
    const idle = kept.size > maxKept ? [...kept].find(([, { calls }]) => calls === 0) : undefined;
    if (idle) leave(...idle);
    return entry;
  }

  function leave(key: string, { services }: Entry): void {
    kept.delete(key);
    const over: Promise<void> = services
      .settle()
      .then(services.flush)
      .finally(() => leaving.delete(over));
    leaving.add(over);
  }

  const all = () => [own, ...[...new Set([...kept.values(), ...busy])].map(({ services }) => services)];
  return {
    own,
    /** Rejects with an `AppError` of kind `security` where a caller may not read the project that he declares. */
    async of(caller: CallerPlace) {
      const { permissions, isAlone = false } = caller;
      const place = placeOf(shared, caller, productRoot, warn);
      const { roots, root } = await place.catch(error => refuse(shared.mask, caller, error));
      const isOwn = !roots && Object.values(permissions).every(part => part === undefined || part === false);
      if (isOwn) return { services: own, root };
      return { services: entryFor({ ...permissions, ...(roots && { roots }) }, isAlone).services, root };
    },
    async settle() {
      await Promise.all([...all().map(services => services.settle()), ...leaving]);
    },
    async flush() {
      await Promise.all(all().map(services => services.flush()));
    },
  };
}

/** A host that was let go may still be used by a session: it counts as long as it works. */
function counted(services: HostServices, busy: Set<Entry>): Entry {
  const hold = () => {
    entry.calls += 1;
    busy.add(entry);
    return () => {
      entry.calls -= 1;
      if (entry.calls === 0) busy.delete(entry);
    };
  };
  const entry: Entry = { calls: 0, services: { ...services, host: holdingInCalls(services.host, hold) } };
  return entry;
}
