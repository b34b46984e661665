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
  const open = new Set<WeakRef<Followed>>();
  let keptCount = leastKept;
  tokens.onChange(() => {
    for (const each of open)
      each
        .deref()
        ?.refresh()
        .catch(() => undefined);
  });
  return async (caller, root, listed) => {
    const first = await productOf(caller, root, listed);
    const followed = new Followed(first, caller, { tokens, productOf: each => productOf(each, root, listed) });
    open.add(new WeakRef(followed));
    if (open.size > keptCount) {
      for (const each of open) if (!each.deref()) open.delete(each);
      keptCount = Math.max(leastKept, open.size * 2);
    }
    return { ...first, host: followed.host };
  };
}

interface FollowedParts {
  tokens: Pick<Tokens, 'now'>;
  productOf(caller: Caller): Promise<CallerProduct>;
}

class Followed {
  readonly #parts: FollowedParts;
  readonly #root: string;
  /** Whose product it is; undefined: that could not be made. */
  #caller: Caller | undefined;
  #product: Promise<CallerProduct>;
  /** The newest that is ready. */
  #latest: CallerProduct;
  readonly #first: Caller;

  constructor(first: CallerProduct, caller: Caller, parts: FollowedParts) {
    this.#parts = parts;
    this.#root = first.root;
    this.#first = caller;
    this.#caller = caller;
    this.#product = Promise.resolve(first);
    this.#latest = first;
  }

  /** The product of the caller as he is now. Rejects with an `AppError` where he may use none any more. */
  async refresh(): Promise<CallerProduct> {
    const caller = this.#parts.tokens.now(this.#first);
    if (!caller) throw takenBack();
    if (caller === this.#caller) return this.#product;
    const product = this.#parts.productOf(caller);
    this.#caller = caller;
    this.#product = product;
    try {
      const made = await product;
      if (this.#product === product) this.#latest = made;
      return made;
    } catch (error) {
      // The next call tries again.
      if (this.#product === product) this.#caller = undefined;
      throw error;
    }
  }

  readonly host: ToolHost = {
    list: () => this.#latest.host.list(),
    replyTokens: () => this.#latest.host.replyTokens?.(),
    call: async (request, signal) => {
      const { host, root } = await this.refresh();
      const { principal } = request;
      // Who declared no project is in the first of those that he may read, which may be another one now.
      return host.call(
        principal.root === this.#root ? { ...request, principal: { ...principal, root } } : request,
        signal,
      );
    },
    prompts: {
      list: () => this.#latest.host.prompts.list(),
      text: (name, args) => this.#latest.host.prompts.text(name, args),
    },
    resources: {
      templates: () => this.#latest.host.resources.templates(),
      list: principal => this.#latest.host.resources.list(principal),
      read: (uri, principal) => this.#latest.host.resources.read(uri, principal),
      watch: (owner, listener, signal) => this.#latest.host.resources.watch(owner, listener, signal),
    },
    jobs: {
      find: (id, owner) => this.#latest.host.jobs.find(id, owner),
      cancel: (id, owner) => this.#latest.host.jobs.cancel(id, owner),
      stage: job => this.#latest.host.jobs.stage(job),
      questions: job => this.#latest.host.jobs.questions(job),
      answer: (job, key, answer) => this.#latest.host.jobs.answer(job, key, answer),
      show: reply => this.#latest.host.jobs.show(reply),
      keep: (tool, reply, owner) => this.#latest.host.jobs.keep(tool, reply, owner),
    },
    complete: (argument, typed, principal) => this.#latest.host.complete(argument, typed, principal),
  };
}

function takenBack() {
  return securityError('Your token was taken back.', {
    class: 'token',
    next: 'Ask the operator for the token that holds now.',
  });
}
