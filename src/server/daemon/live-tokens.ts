import { readFile, stat } from 'node:fs/promises';
import { normalize } from 'node:path';
import { asError, configError, isAppError, securityError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { ToolHost } from '../../core/tool-host.ts';
import { type Caller, operator } from '../access/caller.ts';
import type { TokenChange, TokenEntry, Tokens } from '../access/tokens.ts';
import { createTokens, readTokens, repeated, withToken } from '../access/tokens.ts';
import type { CallerProduct, RouteServices } from '../http/routes.ts';
import { replaceFile } from './health-file.ts';

/** The operator's file of tokens as it was when it was read. */
interface TokenFile {
  entries: readonly TokenEntry[];
  /** Something the operator should know of the file, as a sentence. */
  warning?: string;
}

/** Where systemd and container engines put what one service alone may read, with modes of their own that nobody can change. */
export const isHandedIn = (path: string): boolean => /^\/run\/(credentials|secrets)\//.test(normalize(path));

/** Rejects with an `AppError` of kind `config` where it can't be read or says what can't be. */
export async function readTokenFile(path: string): Promise<TokenFile> {
  const entries = readTokens(await readText(path), path);
  const { mode } = await stat(path);
  const isOpen = process.platform !== 'win32' && !isHandedIn(path) && (mode & 0o077) !== 0;
  return { entries, ...(isOpen && { warning: `Other users of this machine may read ${path}; "chmod 600" it.` }) };
}

/** Is another text after each change of the file, as far as that can be told without reading it. */
async function fingerprintOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch {
    // Why it can't be reached is told by who reads it.
    return 'none';
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw configError(`The file of tokens ${path} cannot be read.`, {
      next: 'Correct POLYLOGUE_TOKENS_FILE, or let this user read the file.',
      cause: error,
    });
  }
}

interface LiveTokensOptions {
  /** The operator's file of tokens, where there is one. */
  path: string | undefined;
  /** The operator's own token, where one is set. */
  own: TokenEntry | undefined;
  clock: Pick<Clock, 'after'>;
  /** Hears of all that are to be masked, each time that there are others. */
  onSecrets?(secrets: readonly string[]): void;
  /** Hears of what is wrong, once, as a sentence. */
  warn(message: string): void;
  /** Hears of what changed, as a sentence. */
  log(message: string): void;
}

/** The tokens of a daemon: the operator's own, and those of his file as it is now. */
export interface LiveTokens {
  tokens: Tokens;
  /** Reads the file at once, whether it looks changed or not. Never rejects: a bad file leaves the tokens as they are. */
  reload(): Promise<void>;
  /** Why the tokens are not those of the file, as it is now. */
  problem(): string | undefined;
  close(): void;
}

/** How often the file is looked at; a change is read once the file stayed as it is for so long. */
const lookMs = 1_000;

/** Rejects with an `AppError` of kind `config` where the file can't be used. */
export async function openLiveTokens(options: LiveTokensOptions): Promise<LiveTokens> {
  const { path, own, onSecrets } = options;
  const first = own ? [own] : [];
  if (path === undefined) {
    const tokens = createTokens(first, operator, onSecrets);
    const reportState = async () =>
      options.log('There is no file of tokens to be read again; settings are read at the start.');
    return { tokens, reload: reportState, problem: () => undefined, close() {} };
  }
  // Before it is read: what changes meanwhile is found by the next look.
  const seen = await fingerprintOf(path);
  const file = await readTokenFile(path);
  checkUnique([...first, ...file.entries], path);
  return new FollowedFile(options, { path, seen, file });
}

/** What the daemon holds is what the file says, but for tokens that were rotated since and that the file could not take. */
class FollowedFile implements LiveTokens {
  readonly tokens: Tokens;
  readonly #options: LiveTokensOptions;
  readonly #path: string;
  /** Name → the digest that the file has, as far as it was read or written. */
  #digests: Map<string, string>;
  /** Fingerprint of the file that was read last. */
  #seen: string;
  /** Fingerprint at the last look, where it was another one. */
  #moving: string | undefined;
  #problem: string | undefined;
  #warned: string | undefined;
  /** Reading and writing take turns: a rotation on its way into the file must not be taken for one taken back. */
  #last: Promise<void> = Promise.resolve();
  #stop = () => {};
  #isOver = false;

  constructor(options: LiveTokensOptions, { path, seen, file }: { path: string; seen: string; file: TokenFile }) {
    this.#options = options;
    this.#path = path;
    this.#seen = seen;
    this.#digests = digestsOf(file);
    const { own, onSecrets } = options;
    this.tokens = createTokens([...(own ? [own] : []), ...file.entries], operator, onSecrets);
    this.tokens.onRotation(entry => void this.#keep(entry));
    this.#warn(file.warning);
    this.#look();
  }

  readonly problem = () => this.#problem;
  readonly reload = () => this.#inTurn(() => this.#read(true));

  close(): void {
    this.#isOver = true;
    this.#stop();
  }

  #look(): void {
    this.#stop = this.#options.clock.after(lookMs, () => {
      void this.#inTurn(() => this.#follow()).then(() => this.#isOver || this.#look());
    });
  }

  async #follow(): Promise<void> {
    const now = await fingerprintOf(this.#path);
    const isStill = now === this.#moving;
    this.#moving = now === this.#seen ? undefined : now;
    // Whoever writes it may not be done yet.
    if (this.#moving !== undefined && isStill) await this.#read();
  }

  async #read(isAsked = false): Promise<void> {
    this.#seen = await fingerprintOf(this.#path);
    try {
      const file = await readTokenFile(this.#path);
      const change = this.tokens.replace(held => this.#merged(held, file));
      this.#report(change, file, isAsked || this.#problem !== undefined);
      this.#digests = digestsOf(file);
      this.#problem = undefined;
      this.#warn(file.warning);
    } catch (error) {
      // The daemon goes on with what it has: a slip of the pen must lock nobody out.
      const why = isAppError(error) ? `${error.message} ${error.details.next ?? ''}` : String(error);
      this.#problem = `The tokens of before hold on: ${why.trim()}`;
      if (isAsked && this.#problem === this.#warned) this.#options.log(this.#problem);
      this.#warn(this.#problem);
    }
  }

  /** What the file says; where it still says what it said before, a token that came by rotation stays. */
  #merged(held: readonly TokenEntry[], { entries }: TokenFile): TokenEntry[] {
    const own = held.filter(({ caller }) => caller.name === operator.name && !this.#digests.has(caller.name));
    const merged = entries.map(entry => {
      const { name } = entry.caller;
      const now = held.find(({ caller }) => caller.name === name);
      const isSaidAgain = this.#digests.get(name) === entry.digest.toString('hex');
      return now && isSaidAgain ? { ...now, caller: entry.caller } : entry;
    });
    const all = [...own, ...merged];
    checkUnique(all, this.#path);
    return all;
  }

  /** Puts a rotated token into the file in the place of the one that it came for, so that it holds after a restart too. */
  async #keep(entry: TokenEntry): Promise<void> {
    try {
      await this.#inTurn(async () => {
        const { name } = entry.caller;
        const changed = withToken(await readText(this.#path), this.#path, this.#digests.get(name), entry);
        // Where the operator put another one there meanwhile, that is the one that is to hold: it is read soon.
        if (changed === undefined) return;
        await replaceFile(this.#path, changed);
        this.#digests.set(name, entry.digest.toString('hex'));
      });
    } catch (error) {
      const why = asError(error).message;
      this.#options.warn(`A rotated token holds until the next start, or until the file says another: ${why}`);
    }
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    // The failure of one is told to who asked for it; the next one has its turn all the same.
    this.#last = done.catch(() => undefined);
    return done;
  }

  #report({ ended, gone, others }: TokenChange, { entries }: TokenFile, isAsked: boolean): void {
    const changes = [
      ...[...ended].map(name => `${name} ${gone.has(name) ? 'is out' : 'has another token'}`),
      ...[...others].map(name => `${name} ${this.#digests.has(name) ? 'may do other things' : 'is new'}`),
    ];
    if (changes.length === 0 && !isAsked) return;
    const what = changes.length === 0 ? 'nothing changed' : changes.join(', ');
    this.#options.log(`The file of tokens was read again (tokens in it: ${entries.length}): ${what}.`);
  }

  /** Each once, until there is another. */
  #warn(message: string | undefined): void {
    if (message !== undefined && message !== this.#warned) this.#options.warn(message);
    this.#warned = message;
  }
}

function digestsOf({ entries }: TokenFile): Map<string, string> {
  return new Map(entries.map(({ caller, digest }) => [caller.name, digest.toString('hex')]));
}

function checkUnique(entries: readonly TokenEntry[], path: string): void {
  const taken = repeated(entries);
  if (!taken) return;
  throw configError(
    `The file of tokens ${path} gives "${taken.caller.name}" a name or a token that is in use: POLYLOGUE_TOKEN, its name "${operator.name}", or one that came by rotation.`,
    { next: 'Give the entry another one, or unset POLYLOGUE_TOKEN.' },
  );
}

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
