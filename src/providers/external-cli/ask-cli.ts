import { AppError, inputError, limitError, securityError, throwIfAborted } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { Clock, Emit, Random } from '../../core/ports.ts';
import { safeCut, withoutKeys } from '../../core/text.ts';
import { type ChildEnv, findProgram, type ProgramSearch, programFolders } from '../../workspace/programs.ts';
import type { CliDefinition, CliEvent } from './clis/cli.ts';
import { type CliOutput, readOutput } from './command/output.ts';
import type { ConfiguredCli } from './configured-clis.ts';
import { type CliRequest, type CliResponse, markName } from './contract.ts';
import type { CliExit } from './run-cli.ts';
import { asksForLogin, cliEnvironment, failureOf, maxLoginLength, notInstalled, runCli } from './run-cli.ts';

/** Arguments of a configuration without those that let a CLI do more than read. */
export function narrowed(args: readonly string[], widening: readonly string[]) {
  const kept: string[] = [];
  const leftOut: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    const name = arg.split('=', 1)[0] ?? '';
    const takesValue = widening.includes(`${name}=`);
    const isFlag = takesValue || widening.includes(name);
    if (!isFlag && !widensSettings(arg, args[at - 1])) kept.push(arg);
    else {
      leftOut.push(arg);
      // The flag in front of a setting goes with it, and so does the value of a flag.
      if (!isFlag && kept.at(-1) === args[at - 1]) kept.pop();
      else if (takesValue && !arg.includes('=')) leftOut.push(...args.slice(at + 1, ++at + 1));
    }
  }
  return { kept, leftOut };
}

/** `-c sandbox_mode="danger-full-access"` and its like. */
function widensSettings(arg: string, before: string | undefined): boolean {
  const setting = /^(?:-c|--config)=?(.*)$/.exec(arg)?.[1] || (before === '-c' || before === '--config' ? arg : '');
  return /^\s*["']?(?:sandbox|approval|permission|default_permissions|mcp_servers|hooks|projects|notify)/i.test(
    setting,
  );
}

/** Flags that may be given more than once. */
const repeatable = new Set([
  ...['-c', '--config', '--enable', '--disable', '--add-dir', '--include-directories', '--mcp-config', '-i', '--image'],
]);

/** Arguments of a configuration without the flags that are given anyway, which some CLIs refuse twice; their values go with them. */
export function withoutRepeats(args: readonly string[], given: readonly string[], short: CliDefinition['short'] = {}) {
  const nameOf = (arg: string) => arg.replace(/=.*/s, '').replace(/^-\w$/, flag => short[flag] ?? flag);
  const fresh: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    const name = nameOf(arg);
    const place = name.startsWith('-') && !repeatable.has(name) ? given.findIndex(each => nameOf(each) === name) : -1;
    if (place === -1) fresh.push(arg);
    else if (!arg.includes('=') && (given[place]?.includes('=') || given[place + 1]?.startsWith('-') === false)) at++;
  }
  return fresh;
}

const atSign = '@';

/** The same letter in another width: people and models read it as an at sign, programs do not. */
const wideAtSign = '\uff20';

/**
 * A prompt in which a CLI finds no commands, and its answer to it with the signs that were changed as they should be. CLIs read commands out of prompts: `@path` puts a file in, a slash or a dash at the beginning does something else altogether.
 * What callers, files and models say must not: at signs are widened, and what is in front was put there by us.
 */
export function escapeCliPrompt({ plainAt }: Pick<CliDefinition, 'plainAt'>, prompt: string) {
  const text = prompt.replaceAll('\0', '');
  const same = (answer: string) => answer;
  if (plainAt || !text.includes(atSign)) return { text: safeStart(text), restored: same };
  const note = `In this text ${wideAtSign} replaces an at sign; write and use the ordinary one.`;
  const widened = safeStart(`${text.replaceAll(atSign, wideAtSign)}\n\n${note}`);
  // Where the prompt had wide ones of its own, nobody can tell which one is meant.
  const restored = text.includes(wideAtSign) ? same : (answer: string) => answer.replaceAll(wideAtSign, atSign);
  return { text: widened, restored };
}

/** Prompts of ours begin with a heading. */
const safeStart = (text: string): string => (/^[\p{L}\p{N}=]/u.test(text) ? text : `Request:\n${text}`);

export interface AskCliParts {
  /** The environment of this process; a CLI gets what its list allows. */
  childEnv: ChildEnv;
  platform: string;
  /** Where it works when a call names no project. */
  root: string;
  /** Projects that are served; absolute. */
  roots: readonly string[];
  /** The operator lets CLIs change files. */
  mayWrite: boolean;
  clock: Clock;
  random: Random;
  emit: Emit;
}

/** Programs of projects are never taken for a CLI. */
export function searchOf({ childEnv, platform, root, roots }: AskCliParts, project = root): ProgramSearch {
  return { env: childEnv, platform, projects: [...roots, root, project] };
}

/** Systems refuse longer arguments; what Windows refuses besides is known when a program is run. */
const maxArgumentBytes = 100_000;

/** What a CLI gets to end once it has said that it is done: some wait for what they started, for ever. */
const settleMs = 3_000;

/** What a CLI gets for its first event once it has asked for a login: nobody is there to log in, and some wait for ever. */
const loginMs = 30_000;

/** Runs one CLI on one question. */
export async function askCli(parts: AskCliParts, cli: ConfiguredCli, question: CliRequest): Promise<CliResponse> {
  throwIfAborted(question.signal);
  if (parts.childEnv[markName] !== undefined)
    // A CLI that has this server among its own tools could ask itself for ever.
    throw securityError('This server was started by a CLI that it is itself asked to start.', {
      class: 'nested',
      next: 'Do the work yourself: you are the agent that was asked.',
    });
  const search = searchOf(parts, question.root);
  const file = await findProgram(cli.executable, search);
  if (file === undefined) throw notInstalled(cli);
  const path = (await programFolders(search)).join(parts.platform === 'win32' ? ';' : ':');
  const prompt = escapeCliPrompt(cli, question.prompt);
  const { args, leftOut, mayWrite } = commandOf(parts, cli, question);
  const inArguments = cli.promptBy === 'last' ? [argument(cli, prompt.text)] : [];
  const mark = parts.random.uuid();
  const stops = createStops(parts.clock, question.signal);
  const stream = holdBack(delta => question.onText(prompt.restored(delta)));
  const steps: JsonObject[] = [];
  let phase: 'silent' | 'asks' | 'works' = 'silent';
  const reader = readOutput(cli, {
    onText: stream.push,
    onEvent(event) {
      if (phase !== 'works') stops.clear();
      phase = 'works';
      if (event.type === 'end') stops.settle();
      if (event.type === 'note') question.onWork(safeCut(event.text, maxNoteLength));
      if (event.type !== 'tool_use' && event.type !== 'tool_result') return;
      const { type: step, ...facts } = event;
      if (steps.length < maxSteps) steps.push({ step, ...facts });
      reportStep(parts.emit, cli, question, event);
    },
    onFull: stops.full,
  });
  const began = parts.clock.monotonic();
  const exit = await runCli({
    file,
    args: [...args, ...inArguments],
    cwd: cli.directory ?? question.root ?? parts.root,
    env: { ...cliEnvironment(cli, parts.childEnv, mark), ...(!mayWrite && cli.setToRead), PATH: path },
    input: cli.promptBy === 'last' ? '' : prompt.text,
    mark,
    platform: parts.platform,
    clock: parts.clock,
    signal: stops.signal,
    onOutput(chunk, from) {
      // One without events says nothing while it works: nobody can tell whether it waits.
      if (phase === 'silent' && cli.read && cli.login.test(chunk.toString('utf8'))) {
        phase = 'asks';
        stops.settle(loginMs);
      }
      if (from === 'stdout') reader.push(chunk);
    },
  });
  stops.clear();
  throwIfAborted(question.signal);
  const output = reader.end();
  const cut = stops.wasFull();
  if (output.text.trim() === '' || asksForLogin(cli, output))
    throw cut ? tooMuch(cli) : failureOf(cli, output, exit, question.session !== undefined);
  stream.flush();
  const command = [cli.executable, ...args, ...inArguments.map(() => '<prompt>')].map(text => withoutKeys(text));
  const { session, usage, usageOfSession, costUsd } = output;
  return {
    finish: cut ? 'output_limit' : 'stop',
    ...{ session, usage, usageOfSession, costUsd },
    metadata: {
      ...{ cli_name: cli.name, role: question.role ?? 'default', command },
      duration_seconds: Math.round(parts.clock.monotonic() - began) / 1_000,
      ...metadataOf(cli, output, exit),
    },
    steps,
    warnings: [...leftOut, ...warningsOf(cli, output, exit, cut)],
  };
}

/** As much as a log wants to have of one answer. */
const maxSteps = 200;

/** Only shows that work goes on. */
const maxNoteLength = 200;

type CliStep = Extract<CliEvent, { type: 'tool_use' | 'tool_result' }>;

function reportStep(emit: Emit, cli: CliDefinition, { reqId, tool, onWork }: CliRequest, event: CliStep): void {
  const { type: step, name = '', id, detail } = event;
  onWork(`[${step} ${name}]`);
  const outcome = event.type === 'tool_result' ? { ok: event.ok } : {};
  emit({ type: 'program.step', reqId, tool, program: cli.name, step, name, detail, ...(id && { id }), ...outcome });
}

/** All that ends a run before it ends by itself. */
function createStops(clock: Clock, caller: AbortSignal) {
  const own = new AbortController();
  let full = false;
  let cancel = () => {};
  return {
    signal: AbortSignal.any([caller, own.signal]),
    full() {
      full = true;
      own.abort();
    },
    settle(ms = settleMs) {
      cancel();
      cancel = clock.after(ms, () => own.abort());
    },
    wasFull: () => full,
    clear: () => cancel(),
  };
}

/** The beginning of an answer waits until it can't be a prompt for a login any more: what was passed on is not taken back. */
function holdBack(pass: (delta: string) => void) {
  let held: string | undefined = '';
  const flush = () => {
    const waiting = held ?? '';
    held = undefined;
    if (waiting !== '') pass(waiting);
  };
  const push = (delta: string) => {
    if (held === undefined) return pass(delta);
    held += delta;
    if (held.length > maxLoginLength) flush();
  };
  return { push, flush };
}

const placeHolder = '\0';

/** It would be taken for an option, or is no argument at all. */
const noName = /^-|\p{Cc}/u;

function commandOf({ mayWrite: allowed }: AskCliParts, cli: ConfiguredCli, question: CliRequest) {
  const { model, session, role } = question;
  if (model !== undefined && noName.test(model))
    throw inputError(`${JSON.stringify(safeCut(model, 80))} is the name of no model of ${cli.title}.`, {
      next: 'Name one of its models, or leave the name out for its own choice.',
      validationErrors: [{ field: 'model', error: 'an option' }],
    });
  const mayWrite = allowed && question.mayWrite;
  const roleArgs = cli.roles.find(({ name }) => name === role)?.args ?? [];
  const narrow = (args: readonly string[]) =>
    mayWrite ? { kept: [...args], leftOut: [] } : narrowed(args, cli.widening);
  const prefix = narrow(cli.prefix);
  const extra = narrow([...withoutRepeats(cli.extra, roleArgs, cli.short), ...roleArgs]);
  // What it is given depends on what is added: a place holder shows where that stands.
  const context = cli.command({ model, session, mayWrite }, [...extra.kept, placeHolder]);
  const at = context.indexOf(placeHolder);
  const own = [...context.slice(0, at - extra.kept.length), ...context.slice(at + 1)];
  const fresh = withoutRepeats(extra.kept, own, cli.short);
  const args = [...prefix.kept, ...cli.command({ model, session, mayWrite }, fresh)];
  const leftOut = [...prefix.leftOut, ...extra.leftOut];
  const warning = `${leftOut.join(' ')} was left out: it lets ${cli.title} do more than read; CLI_ALLOW_WRITES and allow_writes together permit it.`;
  return { args, mayWrite, leftOut: leftOut.length > 0 ? [warning] : [] };
}

function argument({ title }: CliDefinition, prompt: string): string {
  if (Buffer.byteLength(prompt) <= maxArgumentBytes) return prompt;
  throw limitError('size', `${title} takes its prompt as an argument, and this one is too long for that.`, {
    next: `Send less than ${maxArgumentBytes} bytes, begin a new thread, or name a CLI that reads its prompt from standard input.`,
  });
}

const tooMuch = ({ name, title }: CliDefinition): AppError =>
  new AppError('limit', `${title} printed more than is read, and no answer among it; it was ended.`, {
    code: 'LIMIT',
    class: 'output_too_large',
    next: 'Send a smaller request.',
    data: { cli_name: name },
  });

function warningsOf(cli: CliDefinition, { errors, warnings }: CliOutput, exit: CliExit, cut: boolean): string[] {
  const code = exit.code !== 0 && !cut ? [`${cli.title} ended with code ${exit.code} after its answer.`] : [];
  const limit = cut
    ? [`${cli.title} was ended: it said more than is kept. What it said until then is the answer.`]
    : [];
  return [...limit, ...code, ...[...errors, ...warnings].map(text => withoutKeys(text))].slice(0, 10);
}

const shownStderr = 1_000;

/** For the reply's metadata, in the words of PAL's. */
function metadataOf(cli: ConfiguredCli, output: CliOutput, exit: CliExit): JsonObject {
  const { usage } = output;
  return {
    parser: cli.parser,
    return_code: exit.code ?? null,
    model_used: output.model,
    session_id: output.session,
    token_usage: usage && { input_tokens: usage.input, output_tokens: usage.output, cached_tokens: usage.cacheRead },
    tool_calls: output.tools,
    ...(exit.code !== 0 &&
      exit.stderr.trim() !== '' && { stderr: withoutKeys(exit.stderr.trim()).slice(-shownStderr) }),
  };
}
