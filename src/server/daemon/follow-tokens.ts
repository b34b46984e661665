import { securityError } from '../../core/errors.ts';
import type { ToolHost } from '../../core/tool-host.ts';
import type { Caller } from '../access/caller.ts';
import type { Tokens } from '../access/tokens.ts';
import type { CallerProduct, RouteServices } from '../http/routes.ts';

type ProductOf = RouteServices['productOf'];

/** More that nobody uses any more are looked through for those that can be forgotten. */
const leastKept = 256;

/**
 * Products that follow what their callers may do, for as long as connections and sessions last: each call is one of the caller
 * as he is when it begins.
 */
export function followTokens(tokens: Pick<Tokens, 'now' | 'onChange'>, productOf: ProductOf): ProductOf {
  // Whoever is listed hears of a change before his next call; being listed keeps none of them.
  const open = new Set<WeakRef<() => Promise<unknown>>>();
  let keptCount = leastKept;
  tokens.onChange(() => {
    for (const each of open)
      each
        .deref()?.()
        .catch(() => undefined);
  });
  return async (caller, root, listed) => {
    const first = await productOf(caller, root, listed);
    const { host, refresh } = follow(first, caller, tokens, each => productOf(each, root, listed));
    open.add(new WeakRef(refresh));
    if (open.size > keptCount) {
      for (const each of open) if (!each.deref()) open.delete(each);
      keptCount = Math.max(leastKept, open.size * 2);
    }
    return { ...first, host };
  };
}

function follow(
  first: CallerProduct,
  caller: Caller,
  tokens: Pick<Tokens, 'now'>,
  productOf: (caller: Caller) => Promise<CallerProduct>,
) {
  let newest = Promise.resolve(first);
  /** Whose product it is; undefined: that could not be made. */
  let itsCaller: Caller | undefined = caller;
  /** The newest that is ready. */
  let ready = first;

  /** The product of the caller as he is now. Rejects with an `AppError` where he may use none any more. */
  async function refresh(): Promise<CallerProduct> {
    const now = tokens.now(caller);
    if (!now)
      throw securityError('Your token was taken back.', {
        class: 'token',
        next: 'Ask the operator for a valid token.',
      });
    if (now === itsCaller) return newest;
    const product = productOf(now);
    itsCaller = now;
    newest = product;
    try {
      const made = await product;
      if (newest === product) ready = made;
      return made;
    } catch (error) {
      // The next call tries again.
      if (newest === product) itsCaller = undefined;
      throw error;
    }
  }

  /** A part of the host as it is at each use, for whoever keeps it. */
  const live = <Part extends object>(partOf: (host: ToolHost) => Part): Part =>
    new Proxy(partOf(first.host), { get: (_first, key) => Reflect.get(partOf(ready.host), key) });

  const host: ToolHost = {
    list: () => ready.host.list(),
    replyTokens: () => ready.host.replyTokens?.(),
    async call(request, signal) {
      const { host, root } = await refresh();
      const { principal } = request;
      // Who declared no project is in the first of those that he may read, which may be another one now.
      const own = principal.root === first.root ? { ...principal, root } : principal;
      return host.call({ ...request, principal: own }, signal);
    },
    prompts: live(({ prompts }) => prompts),
    resources: live(({ resources }) => resources),
    jobs: live(({ jobs }) => jobs),
    complete: (argument, typed, principal) => ready.host.complete(argument, typed, principal),
  };
  return { host, refresh };
}
