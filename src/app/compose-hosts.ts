import type { Permissions } from '../core/tool-host.ts';
import { type CallerPlace, placeOfCaller } from '../wire/place-of-caller.ts';
import { unlimited } from './compose-catalog.ts';
import type { Front } from './compose-front.ts';
import { type SharedParts, type WiredHost, wireHost } from './compose-host.ts';

/** One host for all callers with the same permissions. */
export interface Hosts {
  /** The operator's own, with everything. */
  own: WiredHost;
  /** Rejects with an `AppError` of kind `security` where a caller may not read the project that he declares. */
  of(caller: CallerPlace): Promise<{ wired: WiredHost; root: string }>;
  settle(hurry?: AbortSignal): Promise<void>;
  flush(): Promise<void>;
}

interface Entry {
  wired: WiredHost;
  /** Under way. */
  calls: number;
}

/** More than one daemon has projects and permissions at a time; the one used least lately makes room. */
const mostKept = 256;
/** Different things that clients list and that can be no roots are told of, each once. */
const mostWarned = 256;

export function createHosts(shared: SharedParts, { root: productRoot, offered }: Front): Hosts {
  const own = wireHost(shared, unlimited, { offered });
  // The one used least lately stands first.
  const kept = new Map<string, Entry>();
  const busy = new Set<Entry>();
  const leaving = new Set<Promise<void>>();

  const warned = new Set<string>();
  const warn = (message: string) => {
    if (warned.has(message) || warned.size >= mostWarned) return;
    warned.add(message);
    shared.emit({ type: 'warning', where: 'roots', message });
  };

  function entryFor(permissions: Permissions, isAlone: boolean): Entry {
    const { toolsets, allow, deny, readOnly, maxCostPerDay, roots } = permissions;
    const key = JSON.stringify(
      [toolsets, allow, deny, readOnly, maxCostPerDay, roots, isAlone].map(part => part ?? null),
    );
    const entry = kept.get(key) ?? counted(wireHost(shared, permissions, { isAlone }), busy);
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
      const { permissions, isAlone = false } = caller;
      const { roots, root } = await placeOfCaller(shared, caller, productRoot, warn);
      const isOwn = !roots && Object.values(permissions).every(part => part === undefined || part === false);
      if (isOwn) return { wired: own, root };
      return { wired: entryFor({ ...permissions, ...(roots && { roots }) }, isAlone).wired, root };
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
