import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { findDaemons, readTokenFile } from '../../app/app.ts';
import type { Product } from '../../app/compose-product.ts';
import { homeAdvice, homeProblem } from '../../config/home.ts';
import { orAbort, withTimeout } from '../../core/concurrency.ts';
import { isAppError } from '../../core/errors.ts';
import { isRecord, parsedJson, recordIn } from '../../core/json.ts';
import type { OptionSpec } from '../../core/option.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { type CommandContext, isOn } from '../command/command.ts';
import { allOptions } from '../command/environment.ts';

/** One thing that was looked at. */
export interface Finding {
  /** `note`: a fact; `warn`: works, but not as it could; `fail`: something needed is broken. */
  state: 'ok' | 'note' | 'warn' | 'fail';
  /** What was looked at, e.g. `data directory`. */
  what: string;
  text: string;
  /** What to do now. */
  next?: string | undefined;
}

const warning = (what: string, text: string, next?: string): Finding => ({ state: 'warn', what, text, next });

const failure = (what: string, text: string, next?: string): Finding => ({ state: 'fail', what, text, next });

/** Node, the program, the data folder. */
async function checkMachine({ environment, config, launch }: CommandContext): Promise<Finding[]> {
  const { nodeVersion, platform } = environment;
  return [
    { state: 'ok', what: 'node', text: `${nodeVersion} on ${platform} (${launch.node})` },
    { state: 'note', what: 'program', text: launch.program },
    await dataFolder(config.home),
  ];
}

/** Daemons of this data folder, with where their token is. */
async function checkDaemons({ environment, config }: CommandContext): Promise<Finding[]> {
  const found = (await findDaemons(config, environment.clock)).filter(({ state }) => state !== 'gone');
  return found.map(({ url, token_file: file }) => {
    const text = file === undefined ? url : `${url}, its token is in ${file}`;
    return { state: 'note', what: 'daemon', text };
  });
}

async function dataFolder(home: string): Promise<Finding> {
  const what = 'data directory';
  const problem = homeProblem(home);
  if (problem !== undefined) return failure(what, `${home}: ${problem}`, homeAdvice);
  if (!existsSync(home)) return { state: 'ok', what, text: `${home} (created with the first thread)` };
  return { state: 'ok', what, text: `${home}, ${sizeText(await sizeOf(home))}` };
}

async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = entries.map(async entry => {
    if (!entry.isFile()) return 0;
    // A file may go while we look.
    return (await stat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

const sizeText = (bytes: number): string =>
  bytes < 1_048_576 ? `${Math.ceil(bytes / 1_024)} KiB` : `${(bytes / 1_048_576).toFixed(1)} MiB`;

type Models = Product['models'];

type Provider = Awaited<ReturnType<Models['providers']>>[number];

const patienceMs = 5_000;

/** Asks each configured provider for its models, all at once. */
async function checkProviders(service: Models): Promise<Finding[]> {
  const providers = await service.providers();
  const configured = providers.filter(provider => provider.configured && !provider.onlyByPrefix);
  const others = providers.filter(provider => !provider.configured && provider.env.length > 0);
  // Those that answer only where they are named help nobody who names none.
  const named = providers.flatMap(({ configured, onlyByPrefix, id, title, models }): Finding[] => {
    const text = `installed; use ${models.map(model => `${id}:${model.id}`).join(', ')}`;
    return configured && onlyByPrefix ? [{ state: 'note', what: title, text }] : [];
  });
  const names = others.map(({ title, env }) => `${title} (${env.join(' and ')})`).join(', ');
  if (configured.length === 0) {
    const next = `Set one of these in the environment or in .env of the data directory: ${names}. Or add --offline to use built-in test models.`;
    return [failure('providers', 'no provider has an API key', next), ...named];
  }
  const found = [...(await Promise.all(configured.map(provider => ping(service, provider)))), ...named];
  // Where one fails, that is said already.
  const isNoneUsable = named.length === 0 && configured.every(({ models }) => models.length === 0);
  if (isNoneUsable && found.every(({ state }) => state !== 'fail')) {
    const next = 'Follow the advice above, or set a key of another provider.';
    found.push(failure('models', 'no provider has a model that may be used', next));
  }
  return names === '' ? found : [...found, { state: 'note', what: 'not configured', text: names }];
}

async function ping(service: Models, { id, title, env, models, advice }: Provider): Promise<Finding> {
  const what = title;
  const signal = AbortSignal.timeout(patienceMs);
  try {
    const { listed, remark } = await orAbort(service.ping(id, signal), signal);
    const ready = listed === undefined ? 'ready (has no model list)' : `reachable, ${listed} models listed`;
    // Many compatible servers answer questions and have no list of models.
    const isUnlisted = listed === 'none';
    const answer = [isUnlisted ? 'it answers, but has no list of models' : ready, remark].filter(Boolean).join('; ');
    const usable = `${models.length} ${isUnlisted ? 'known here' : 'usable'}`;
    // Where the balance cannot be told, models can be asked all the same.
    const left = await orAbort(service.balance(id, signal), signal).catch(() => undefined);
    const balance = left === undefined ? '' : `; balance ${left.available.toFixed(2)}`;
    if (models.length > 0) return { state: 'ok', what, text: `${answer}; ${usable}${balance}` };
    if (isUnlisted) {
      const next = 'Name its models in config.json, or a default in CUSTOM_MODEL_NAME.';
      return warning(what, `${answer}; ${usable}`, next);
    }
    // Where no key was given nobody counts on it.
    if (env.length === 0) return { state: 'note', what, text: 'no model allowed by these settings' };
    return warning(what, `${answer}, but no model may be used`, advice);
  } catch (error) {
    if (signal.aborted) {
      const next = 'Check the network, HTTPS_PROXY, and the base URL if you set one.';
      return failure(what, `no response within ${patienceMs / 1_000} s`, next);
    }
    if (!isAppError(error)) throw error;
    return failure(what, error.message, nextAfter(error.details.class, env));
  }
}

/** The advice of an error speaks to who asked a question; here nobody did. */
const nextAfter = (kind: string, env: readonly string[]): string =>
  kind === 'auth' && env.length > 0
    ? `The provider rejected the key: correct ${env.join(' or ')}.`
    : 'Check the network, HTTPS_PROXY, NODE_EXTRA_CA_CERTS, and the base URL if you set one.';

/** What may be read, and whether it is there. */
function checkRoots({ readable: { roots, reason } }: Product): Finding[] {
  const what = 'readable';
  if (roots.length === 0) {
    const next = 'Start Polylogue inside a git repository, or add --roots with the directories to read.';
    return [warning(what, `no files: ${reason}`, next)];
  }
  // Of what is no directory, or is in one that this user may not enter, nothing is below.
  const { found = [], missing = [] } = Object.groupBy(roots, root => (existsSync(`${root}/.`) ? 'found' : 'missing'));
  const next = 'Correct POLYLOGUE_ROOTS: missing directories are ignored.';
  return [
    ...(found.length > 0 ? [{ state: 'ok', what, text: `${found.join(', ')} (${reason})` } as const] : []),
    ...missing.map(root => warning(what, `${root} is not a directory (${reason})`, next)),
  ];
}

/** What the loader had to say, and where each option that is set comes from. */
function checkSettings({ config }: CommandContext): Finding[] {
  const warnings = config.warnings.map(text => warning('configuration', text));
  const set = allOptions().flatMap(({ table, name, spec }): Finding[] => {
    const source = config.sourceOf(table, name);
    if (source === undefined || source === 'default') return [];
    const value = config.textsOf(table)[name] ?? '';
    const text = `${shown(spec, value)} (${source})`;
    const isThere = spec.type !== 'path' || name === 'home' || existsSync(value);
    const what = spec.env[0] ?? name;
    return [isThere ? { state: 'note', what, text } : warning(what, `${text} does not exist`, 'Correct or unset it.')];
  });
  const none: Finding[] = [{ state: 'note', what: 'configuration', text: 'defaults only' }];
  return [...warnings, ...(set.length > 0 ? set : none)];
}

/** Keys never, passwords within addresses neither. */
function shown({ secret }: OptionSpec, value: string): string {
  if (secret) return 'set (hidden)';
  const url = URL.parse(value);
  // A password with a sign that has to be written in another way ends the host before its time, or all of the address.
  const odd = url?.host ? /[@#]/.test(`${url.pathname}${url.hash}`) : /\/\/.*@/.test(value);
  if (odd) return 'URL (hidden: may contain a password)';
  if (!url?.host) return value;
  if (url.username === '' && url.password === '' && url.search === '') return value;
  return `${url.protocol}//${url.host}${url.pathname} (rest hidden)`;
}

/** What a look at something finds, or what it fails with. */
function looked(what: string, look: (what: string, product: Product, context: CommandContext) => Promise<Finding[]>) {
  return (context: CommandContext, product: Product): Promise<Finding[]> =>
    look(what, product, context).catch((error: unknown) => {
      if (!isAppError(error)) throw error;
      return [failure(what, error.message, error.details.next)];
    });
}

/** Damaged files of threads, which are replaced and never deleted. */
async function checkSetAside({ config: { home } }: CommandContext): Promise<Finding[]> {
  const names = await readdir(home).catch(() => []);
  const next = 'If threads are missing, restore a backup of them (docs/threads.md); then delete the file.';
  return names
    .filter(name => /\.corrupt-(?!.*-(?:wal|shm|journal)$)/.test(name))
    .map(name => warning('set aside', `${join(home, name)} was damaged, and replaced by what was intact`, next));
}

/** Where the clock of this machine was moved, or differs from that of the machine with the store. */
function checkClock({ clockAhead }: Product): Finding[] {
  const hours = clockAhead() / 3_600_000;
  if (Math.abs(hours) < 0.02) return [];
  const text = `the clock of this machine is ${Math.abs(hours).toFixed(2)} h ${hours > 0 ? 'ahead of' : 'behind'} the time by which stored threads expire: it was moved, differs from the server's, or the machine was off for more than a day. Threads keep the time that they had left`;
  return [{ state: 'note', what: 'clock', text }];
}

/** Models that options name: calls do without one that cannot be used, or pass it over, and few would notice. */
async function checkNamedModels({ config }: CommandContext, { models }: Product): Promise<Finding[]> {
  const { defaultModel, defaultModels = [], compactionModel, agentTriageModel = 'auto' } = config.values.app;
  const named = [
    ['DEFAULT_MODEL', defaultModel],
    ...defaultModels.map(name => ['DEFAULT_MODELS', name] as const),
    ['COMPACTION_MODEL', compactionModel === 'off' ? 'auto' : compactionModel],
    ['AGENT_TRIAGE_MODEL', agentTriageModel],
  ] as const;
  const found = named.map(async ([what, name]): Promise<Finding[]> => {
    if (name === 'auto') return [];
    const { candidates, failure: refusal } = await models.explain({ name, category: 'balanced', needs: {} });
    if (refusal) return [warning(what, refusal.message, refusal.next)];
    return [{ state: 'ok', what, text: `${name} is ${candidates[0]?.model.provider}:${candidates[0]?.model.id}` }];
  });
  return (await Promise.all(found)).flat();
}

const handshakeTimeoutMs = 10_000;

const client = { name: 'polylogue-doctor', version: '1' };

/** The first message of a client in each of the two protocol eras. */
const eras = [
  {
    what: 'handshake 2025-11-25',
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: client },
  },
  {
    what: 'handshake 2026-07-28',
    method: 'server/discover',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': client,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  },
] as const;

/** Starts this very program as a host does and says hello to it, in both eras. */
const checkHandshakes = ({ launch, env, environment }: Pick<CommandContext, 'launch' | 'env' | 'environment'>) =>
  Promise.all(
    eras.map(async ({ what, method, params }): Promise<Finding> => {
      const startedAt = environment.clock.monotonic();
      const child = spawn(launch.node, [launch.program], { cwd: environment.cwd, env: { ...env }, stdio: 'pipe' });
      const { promise, resolve } = Promise.withResolvers<Finding>();
      const failed = (text: string) => failure(what, text, 'Run "polylogue < /dev/null" to see the error.');
      let errors = '';
      child.stderr.on('data', chunk => {
        errors = `${errors}${chunk}`.slice(-500);
      });
      child.on('error', error => resolve(failed(error.message)));
      child.on('close', code => resolve(failed(`exited with code ${code}: ${errors.trim()}`)));
      // It may be gone already; `close` tells.
      child.stdin.on('error', () => undefined);
      createInterface({ input: child.stdout }).on('line', line => {
        const ms = Math.round(environment.clock.monotonic() - startedAt);
        // Anything else on stdout is nothing that a host could read.
        if (isRecord(recordIn(parsedJson(line)).result)) resolve({ state: 'ok', what, text: `OK in ${ms} ms` });
        else resolve(failed(`unexpected answer: ${line.slice(0, 200)}`));
      });
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`);
      const finding = await withTimeout(environment.clock, handshakeTimeoutMs, promise);
      child.kill('SIGKILL');
      return finding ?? failed(`no answer within ${handshakeTimeoutMs / 1_000} seconds`);
    }),
  );

/** Tools that are offered, and what their list takes. */
function checkTools({ host }: Product): Finding {
  const tools = host.list();
  const text = JSON.stringify(tools);
  const size = `${Buffer.byteLength(text)} bytes, about ${estimateTokens(text)} tokens`;
  return { state: 'ok', what: 'tools', text: `${tools.length} offered; the list is ${size}` };
}

/** What the server warned of, but for what was found anyway. */
const warnedFindings = ({ warned, readable }: Product, found: readonly Finding[]): Finding[] =>
  warned
    .filter(({ where }) => where !== 'roots' || readable.roots.length > 0)
    // By the vendors' lists of now this was looked at anew.
    .filter(({ where }) => where !== 'lists of models' && !where.startsWith('models of '))
    .filter(({ message }) => !found.some(({ text }) => message.includes(text)))
    .map(({ where, message }) => warning(where, message));

type Check = (context: CommandContext, product: Product, found: readonly Finding[]) => Finding[] | Promise<Finding[]>;

/** All that is looked at, in the order in which it is told. */
export const checks: readonly Check[] = [
  checkMachine,
  // Opens the file or asks the server in which threads live.
  looked('store', async (what, { store }) => {
    const found = await store.inspect?.();
    if (!found) return [];
    return [{ state: 'ok', what, text: found.text }, ...found.warnings.map(text => warning(what, text))];
  }),
  (_, product) => checkClock(product),
  // Where it is asked for: checks all of the file in which threads live, and says what of it had to be replaced.
  looked('repair', async (what, { store }, { flags }) => {
    if (!isOn(flags, 'repair')) return [];
    if (!store.repair) return [{ state: 'note', what, text: 'threads are not stored in a file on this machine' }];
    const { isReplaced, text } = await store.repair();
    if (!isReplaced) return [{ state: 'ok', what, text }];
    return [warning(what, text, 'Check the threads named here, then delete the file that was set aside.')];
  }),
  // Masks as a call does; a data folder that is not there yet gets no key by a look.
  looked('masking', async (_, { tryMask }, { config }) => {
    if (existsSync(config.home)) await tryMask();
    return [];
  }),
  checkSetAside,
  (_, product) => checkRoots(product),
  checkSettings,
  // No daemon starts without it.
  looked('POLYLOGUE_TOKENS_FILE', async (what, _, { config }) => {
    const { tokensFile } = config.values.app;
    const file = tokensFile === undefined ? undefined : await readTokenFile(tokensFile);
    return file?.warning === undefined ? [] : [warning(what, file.warning)];
  }),
  checkDaemons,
  (_, { models }) => models.warnings.map(text => warning('models', text)),
  (_, { models }) => checkProviders(models),
  // Keys that were rejected have been tried anew by now.
  async (_, { models }) =>
    (await models.health()).flatMap(({ provider, model, why, retryAfterSeconds: seconds }) => {
      if (why === undefined) return [];
      const next = `Wait${seconds === undefined ? '' : ` ${seconds} s`}, or choose a model from another provider; calls ask it again then.`;
      return [warning([provider, model].filter(Boolean).join(':'), `is not asked at the moment: ${why}`, next)];
    }),
  async (_, { models }) => (await models.namesOfNone()).map(text => warning('lists of models', text)),
  checkNamedModels,
  // What commands of an agent run in.
  looked('agent sandbox', async (what, { commandSandbox }) => {
    const text = await commandSandbox();
    return [{ state: text.startsWith('none') ? 'note' : 'ok', what, text }];
  }),
  (_, product) => [checkTools(product)],
  checkHandshakes,
  (_, product, found) => warnedFindings(product, found),
];
