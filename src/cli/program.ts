import { fstatSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { inspect } from 'node:util';
import { loadAppConfig } from '../app/settings.ts';
import { systemEnvironment, useProxy } from '../app/system-environment.ts';
import { readIfPresent } from '../config/settings-files.ts';
import { asError, errorCode, inputError, isAppError } from '../core/errors.ts';
import { cutMiddle, decodeText, printableText, withoutKeys } from '../core/text.ts';
import { version } from '../core/version.ts';
import { exitCodeOf, type Invocation, isOn } from './command/command.ts';
import { createOutput, tellFailure } from './command/output.ts';
import { stdio } from './commands/stdio.ts';

const maxBytes = 4_194_304;

/** The text that was piped or redirected into the program; undefined where its input is a terminal or nothing. */
export async function readPiped(input: NodeJS.ReadStream & { fd: number }): Promise<string | undefined> {
  if (input.isTTY || !hasContent(input.fd)) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > maxBytes)
      throw inputError(`The input is larger than ${maxBytes} bytes.`, {
        next: 'Write it into a file of the project and name that file with --file.',
      });
    chunks.push(bytes);
  }
  const bytes = Buffer.concat(chunks);
  const text = decodeText(bytes);
  // What a program prints may hold NUL characters, which no file of text has.
  if (text === undefined && decodeText(Buffer.from(bytes.filter(byte => byte !== 0))) === undefined)
    throw inputError('The input is not text in UTF-8 or UTF-16.', {
      next: 'Convert it to UTF-8, or name a document of the project with --file.',
    });
  return text ?? bytes.toString('utf8');
}

function hasContent(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isFIFO() || stats.isFile() || stats.isSocket();
  } catch {
    // A closed standard input has nothing to say.
    return false;
  }
}

const failedExit = 1;

const maxMessage = 1_000;
const maxFault = 4_000;

/** What holds a key, by its name. */
const secretName = /key|token|secret|passw/i;

/** A fault of this program, without keys, to be reported. Node would show its line of the built program: thousands of characters. */
function tellFault(error: unknown): number {
  const keys = Object.entries(process.env).flatMap(([name, value = '']) => (secretName.test(name) ? value : []));
  const told = (text: string, most: number) => cutMiddle(withoutKeys(text, keys), most);
  const report = `polylogue ${version} failed: ${told(asError(error).message, maxMessage)}\nThis is a bug. Report it with these lines:\n`;
  process.stderr.write(printableText(`${report}${told(inspect(error), maxFault)}\n`));
  return failedExit;
}

/** Runs what the command line asks for; without arguments it serves MCP on standard input and output. */
export async function runProgram(argv: readonly string[]): Promise<void> {
  // Where nobody reads its log any more, or that can't be written, it works on, and ends in good order.
  process.stderr.on('error', () => undefined);
  if (process.listenerCount('uncaughtException') === 0)
    process.on('uncaughtException', error => process.exit(tellFault(error)));
  if (argv.length > 0) process.stdout.on('error', goOnUnread);
  // What a host starts, and waits for, needs no reading of a command line.
  const isConnect = argv.length === 1 && argv[0] === 'connect';
  if (argv.length === 0 || isConnect) {
    const definition = isConnect ? (await import('./commands/connect.ts')).connect : stdio;
    process.exitCode = await run({ definition, args: [], flags: {}, settings: {}, commands: [] });
    return;
  }
  const { runCommandLine } = await import('./run-command-line.ts');
  await runCommandLine(argv, run);
}

async function run({ definition, args, flags, settings, commands }: Invocation): Promise<number> {
  const out = createOutput(process.stdout, process.stderr, isOn(flags, 'json'));
  try {
    const system = systemEnvironment();
    const { cwd, homeDir, platform } = system;
    const { env } = process;
    const sources = { env, argvFlags: settings, homeDir, platform, cwd, readFile: readIfPresent };
    const { config, extensions } = await loadAppConfig(sources);
    const environment = { ...system, extensions };
    await useProxy(config.values.app, env.NODE_EXTRA_CA_CERTS);
    const launch = { node: process.execPath, program: linked(process.argv[1] ?? '') };
    const readInput = () => readPiped(process.stdin);
    const code = await definition.run({ args, flags, config, environment, env, launch, commands, out, readInput });
    return code ?? 0;
  } catch (error) {
    if (!isAppError(error)) return tellFault(error);
    const { code, class: kind, next } = error.details;
    tellFailure(out, { status: 'error', error: { code, class: kind, message: error.message, next } });
    return exitCodeOf(code);
  }
}

/** Where a command leads to. Directories stay as they are named: pnpm links those of the version that is installed now. */
function linked(path: string): string {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path;
  return linked(resolve(realpathSync(dirname(path)), readlinkSync(path)));
}

/** Why the output could not be written. */
let unwritten: Error | undefined;

/** A command does what it began, and what it paid for is stored. Whoever read the output (`head`, a pager) and has seen enough is no failure. */
function goOnUnread(error: Error): void {
  if (errorCode(error) === 'EPIPE' || unwritten) return;
  unwritten = error;
  process.stderr.write(`The output cannot be written (${error.message}).\n`);
  process.once('exit', () => {
    process.exitCode = failedExit;
  });
}
