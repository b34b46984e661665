import { readFile, stat } from 'node:fs/promises';
import { normalize } from 'node:path';
import { createQueue, every } from '../../core/concurrency.ts';
import { asError, configError, isAppError, securityError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { ToolHost } from '../../core/tool-host.ts';
import { type Caller, operator } from '../access/caller.ts';
import type { TokenChange, TokenEntry, Tokens } from '../access/tokens.ts';
import { createTokens, readTokens, repeated, withToken } from '../access/tokens.ts';
import type { CallerProduct, RouteServices } from '../http/routes.ts';
import { replaceFile } from './health-file.ts';

/** Where systemd and container engines put what one service alone may read, with modes of their own that nobody can change. */
export const isMountedSecret = (path: string): boolean => /^\/run\/(credentials|secrets)\//.test(normalize(path));

type TokenFile = Awaited<ReturnType<typeof readTokenFile>>;

/** The operator's file of tokens as it is now, and what he should know of it; rejects with kind `config` where it can't be used. */
export async function readTokenFile(path: string) {
  const entries = readTokens(await readText(path), path);
  const { mode } = await stat(path);
  const isOpen = process.platform !== 'win32' && !isMountedSecret(path) && (mode & 0o077) !== 0;
  const warning = isOpen ? `Other users of this machine may read ${path}; "chmod 600" it.` : undefined;
  return { entries, warning };
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
export type LiveTokens = Awaited<ReturnType<typeof openLiveTokens>>;

/** How often the file is looked at; a change is read once the file stayed as it is for so long. */
const lookMs = 1_000;

/** Rejects with an `AppError` of kind `config` where the file can't be used. */
export async function openLiveTokens(options: LiveTokensOptions) {
  const { path, own, onSecrets } = options;
  const first = own ? [own] : [];
  if (path === undefined) {
    const tokens = createTokens(first, onSecrets);
    const reload = async () =>
      options.log('There is no file of tokens to be read again; settings are read at the start.');
    return { tokens, reload, problem: () => undefined, close() {} };
  }
  // Before it is read: what changes meanwhile is found by the next look.
  const seen = await fingerprintOf(path);
  const file = await readTokenFile(path);
  const held = merged(first, file, new Map(), path);
  return followFile(options, createTokens(held, onSecrets), { path, seen, file });
}

/** What the daemon holds is what the file says, but for tokens that were rotated since and that the file could not take. */
function followFile(
  { clock, warn, log }: LiveTokensOptions,
  tokens: Tokens,
  { path, seen: seenFirst, file: first }: { path: string; seen: string; file: TokenFile },
) {
  /** Fingerprints of the file that was read last, and at the last look, where it was another one. */
  let seen = seenFirst;
  let moving: string | undefined;
  /** Name → the digest that the file has, as far as it was read or written. */
  let digests = digestsOf(first);
  let problem: string | undefined;
  let warned: string | undefined;
  /** Reading and writing take turns: a rotation on its way into the file must not be taken for one taken back. */
  const turns = createQueue();

  async function follow(): Promise<void> {
    const now = await fingerprintOf(path);
    const isStill = now === moving;
    moving = now === seen ? undefined : now;
    // Whoever writes it may not be done yet.
    if (moving !== undefined && isStill) await read();
  }

  async function read(isAsked = false): Promise<void> {
    seen = await fingerprintOf(path);
    try {
      const file = await readTokenFile(path);
      const change = tokens.replace(held => merged(held, file, digests, path));
      report(change, file, isAsked || problem !== undefined);
      digests = digestsOf(file);
      problem = undefined;
      warnOnce(file.warning);
    } catch (error) {
      // The daemon goes on with what it has: a slip of the pen must lock nobody out.
      const why = isAppError(error) ? `${error.message} ${error.details.next ?? ''}` : String(error);
      problem = `The tokens of before hold on: ${why.trim()}`;
      if (isAsked && problem === warned) log(problem);
      warnOnce(problem);
    }
  }

  /** Puts a rotated token into the file in the place of the one that it came for, so that it holds after a restart too. */
  async function keep(entry: TokenEntry): Promise<void> {
    const { name } = entry.caller;
    const changed = withToken(await readText(path), path, digests.get(name), entry);
    // Where the operator put another one there meanwhile, that is the one that is to hold: it is read soon.
    if (changed === undefined) return;
    await replaceFile(path, changed);
    digests.set(name, entry.digest.toString('hex'));
  }

  const inTurn = (work: () => Promise<void>) => turns.run(path, work);

  function report({ ended, gone, others }: TokenChange, { entries }: TokenFile, isAsked: boolean): void {
    const changes = [
      ...[...ended].map(name => `${name} ${gone.has(name) ? 'is out' : 'has another token'}`),
      ...[...others].map(name => `${name} ${digests.has(name) ? 'may do other things' : 'is new'}`),
    ];
    if (changes.length === 0 && !isAsked) return;
    const what = changes.length === 0 ? 'nothing changed' : changes.join(', ');
    log(`The file of tokens was read again (tokens in it: ${entries.length}): ${what}.`);
  }

  /** Each once, until there is another. */
  function warnOnce(message: string | undefined): void {
    if (message !== undefined && message !== warned) warn(message);
    warned = message;
  }

  tokens.onChange(({ rotated }) => {
    if (!rotated) return;
    inTurn(() => keep(rotated)).catch(error =>
      warn(`A rotated token holds until the next start, or until the file says another: ${asError(error).message}`),
    );
  });
  warnOnce(first.warning);
  const stop = every(clock, lookMs, () => inTurn(follow));
  return {
    tokens,
    /** Reads the file at once, whether it looks changed or not. Never rejects: a bad file leaves the tokens as they are. */
    reload: () => inTurn(() => read(true)),
    /** Why the tokens are not those of the file, as it is now. */
    problem: () => problem,
    close: stop,
  };
}

/** What the file says; where it still says what it said before, a token that came by rotation stays. */
function merged(held: readonly TokenEntry[], { entries }: TokenFile, digests: Map<string, string>, path: string) {
  const own = held.filter(({ caller }) => caller.name === operator.name && !digests.has(caller.name));
  const ofFile = entries.map(entry => {
    const { name } = entry.caller;
    const now = held.find(({ caller }) => caller.name === name);
    const isSaidAgain = digests.get(name) === entry.digest.toString('hex');
    return now && isSaidAgain ? { ...now, caller: entry.caller } : entry;
  });
  const all = [...own, ...ofFile];
  const taken = repeated(all);
  if (!taken) return all;
  throw configError(
    `The file of tokens ${path} gives "${taken.caller.name}" a name or a token that is in use: POLYLOGUE_TOKEN, its name "${operator.name}", or one that came by rotation.`,
    { next: 'Give the entry another one, or unset POLYLOGUE_TOKEN.' },
  );
}

const digestsOf = ({ entries }: TokenFile): Map<string, string> =>
  new Map(entries.map(({ caller, digest }) => [caller.name, digest.toString('hex')]));

type ProductOf = RouteServices['productOf'];

/** Products that follow what their callers may do: each call of a long connection is one of the caller as he is when it begins. */
export function followTokens(tokens: Pick<Tokens, 'now' | 'onChange'>, productOf: ProductOf): ProductOf {
  // Whoever is listed hears of a change before his next call; being listed keeps none of them.
  const open = new Set<WeakRef<() => Promise<unknown>>>();
  const forgotten = new FinalizationRegistry((ref: WeakRef<() => Promise<unknown>>) => open.delete(ref));
  tokens.onChange(() => {
    for (const each of open)
      each
        .deref()?.()
        .catch(() => undefined);
  });
  return async (caller, root, listed) => {
    const first = await productOf(caller, root, listed);
    const { host, refresh } = follow(first, caller, tokens, each => productOf(each, root, listed));
    const ref = new WeakRef(refresh);
    open.add(ref);
    forgotten.register(refresh, ref);
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
