import type { GuardedRequest } from '../http/exchange.ts';
import type { ModernLeg } from '../mcp-http/requests.ts';

/** Who asks, and for which project. */
export type From = Pick<GuardedRequest, 'caller' | 'root'>;

/** What 2026 requests of one caller and project have in common. */
interface Leg {
  caller: string;
  made: Promise<ModernLeg>;
}

export interface ModernLegs {
  /** That of a caller and project, made with their first request. */
  of(from: From): Promise<ModernLeg>;
  /** Those of callers who are let in no more. */
  end(callers: ReadonlySet<string>): void;
  close(): Promise<void>;
}

/** Callers and projects that are remembered while nobody of them asks for anything. */
const mostLegs = 256;

/** One leg for each caller and project. */
export function createModernLegs(make: (from: From) => Promise<ModernLeg>): ModernLegs {
  // The one that was used longest ago stands first.
  const legs = new Map<string, Leg>();

  async function forgetIdle(): Promise<void> {
    if (legs.size <= mostLegs) return;
    for (const [key, each] of [...legs].slice(0, -1)) {
      const leg = await each.made.catch(() => undefined);
      if (leg && leg.open() > 0) continue;
      legs.delete(key);
      return;
    }
  }

  return {
    async of(from) {
      const { caller, root } = from;
      // The owner, too: a request that was let in before its token became another owner's must leave him nothing.
      const key = JSON.stringify([caller.name, caller.owner, root ?? null]);
      const leg = legs.get(key) ?? { caller: caller.name, made: make(from) };
      legs.delete(key);
      legs.set(key, leg);
      // A product that can't be made now may be made for the next request.
      leg.made.catch(() => legs.get(key) === leg && legs.delete(key));
      await forgetIdle();
      return leg.made;
    },
    end(callers) {
      for (const [key, { caller, made }] of legs) {
        if (!callers.has(caller)) continue;
        legs.delete(key);
        made.then(leg => leg.close()).catch(() => undefined);
      }
    },
    async close() {
      const made = await Promise.allSettled([...legs.values()].map(leg => leg.made));
      await Promise.all(made.map(leg => (leg.status === 'fulfilled' ? leg.value.close() : undefined)));
    },
  };
}
