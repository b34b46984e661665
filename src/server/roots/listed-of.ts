import type { ToolHost } from '../../domain/request.ts';
import type { Caller } from '../guards/caller.ts';
import type { DoorParts } from '../http/door-parts.ts';
import type { ListedRoots } from './listed-roots.ts';

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
