import type { ToolHost } from '../../core/tool-host.ts';
import type { Caller } from '../access/caller.ts';
import type { DoorParts } from '../http/routes.ts';
import type { ListedRoots } from '../mcp/client-roots.ts';

type Wrap = (host: ToolHost) => ToolHost;

/** The roots that a caller's client lists choose his project, as far as he may read them; `guessed` is his project until then. */
export function listedOf(
  { productOf, clock }: Pick<DoorParts, 'productOf' | 'clock'>,
  { caller, guessed }: { caller: Caller; guessed?: string | undefined },
  wrap: Wrap,
): ListedRoots {
  return through({ clock, productOf: addresses => productOf(caller, guessed, addresses) }, wrap);
}

/** The same, with something around each host. */
export function through({ productOf, clock }: ListedRoots, wrap: Wrap): ListedRoots {
  return {
    clock,
    async productOf(addresses) {
      const { host, root } = await productOf(addresses);
      return { host: wrap(host), root };
    },
  };
}
