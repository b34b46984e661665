import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { onFile } from '../../config/home.ts';
import { configError, inputError, isAppError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import { type CommandContext, defineCommand, flag, isOn, listFlag, textFlag } from '../command/command.ts';
import { type ServerEnvironment, serverEnvironment } from '../command/environment.ts';
import { hasEntry, namesUrl, withEntry, withoutEntry } from '../init/edit-config.ts';
import { type HostDefinition, hosts } from '../init/hosts.ts';

type ConfigFile = ReturnType<typeof openConfigFile>;

/** A file with its text, which is undefined where there is none. */
const openConfigFile = (path: string) =>
  translated(path, () => {
    const stats = fs.statSync(path, { throwIfNoEntry: false });
    if (!stats) return { path, text: undefined };
    if (!stats.isFile()) throw new Error('it is not a regular file');
    // With symbolic links resolved: dotfiles are often kept elsewhere.
    const real = fs.realpathSync(path);
    // Bytes that are no UTF-8 would be written as others.
    return {
      path: real,
      text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fs.readFileSync(real)),
    };
  });

/** The file that has the entry, or gets it: of two, the one that overrides the other. */
function fileOf(host: HostDefinition, name: string, path: string): ConfigFile {
  const files = [...(host.readsJsonc ? [`${path}c`] : []), path].map(openConfigFile);
  const found = files.find(file => named(file, () => hasEntry(host, file.text ?? '', name)));
  return found ?? files.find(({ text }) => text !== undefined) ?? openConfigFile(path);
}

/** What can't be edited is said without its place, which is of use to whoever has to correct it. */
function named<Result>({ path }: ConfigFile, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!isAppError(error) || error.kind !== 'config' || error.message.includes(path)) throw error;
    throw configError(`${path}: ${error.message}`, { next: error.details.next });
  }
}

/** The texts of the backups beside a file, the newest first. */
const backupsOf = ({ path }: ConfigFile): string[] =>
  translated(path, () => {
    const folder = dirname(path);
    const names = fs.readdirSync(folder).filter(name => name.startsWith(`${basename(path)}.bak-`));
    return names
      .toSorted()
      .reverse()
      .map(name => fs.readFileSync(join(folder, name), 'utf8'));
  });

/** Replaces a file in one step, undefined removes it; answers where the old one was kept, if it is to be. */
const replaceConfigFile = ({ path, text: old }: ConfigFile, text: string | undefined, now: number, keeps: boolean) =>
  translated(path, () => {
    const stamp = new Date(now).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 19);
    const backup = old === undefined || !keeps ? undefined : `${path}.bak-${stamp}`;
    // With the mode that it has.
    if (backup !== undefined) fs.copyFileSync(path, backup);
    if (text === undefined) fs.rmSync(path, { force: true });
    else {
      fs.mkdirSync(dirname(path), { recursive: true });
      // A new file may come to hold keys and is for its owner alone.
      const mode = (fs.statSync(path, { throwIfNoEntry: false })?.mode ?? 0o600) & 0o777;
      const draft = `${path}.new`;
      fs.writeFileSync(draft, text, { mode });
      fs.chmodSync(draft, mode);
      fs.renameSync(draft, path);
    }
    return backup;
  });

const permission =
  'Check that it is a UTF-8 text, and read and write permission of it and its directory, then run init again.';

const translated = <Result>(path: string, work: () => Result): Result => onFile(`Cannot use ${path}`, permission, work);

const clients: readonly string[] = hosts.map(host => host.name);

export const init = defineCommand({
  name: 'init',
  group: 'Setup',
  summary: "Add Polylogue to an MCP host's configuration, or remove it",
  flags: [
    flag('client <host>', 'MCP host to configure (required)', { choices: clients }),
    flag('scope <scope>', 'Scope: all your projects (default) or only this one', { choices: ['user', 'project'] }),
    flag('name <name>', "Server name in the host's configuration (default: polylogue)"),
    flag('env <NAME>', "Copy a variable's value into the entry (repeatable)", { repeat: true }),
    flag('bridge', 'Share one daemon between hosts (runs "polylogue connect")'),
    flag('remove', 'Remove the entry'),
    flag('dry-run', 'Show the change without writing it'),
  ],
  examples: [
    ['polylogue init --client claude', "Add it for all projects; keys come from the host's environment"],
    ['polylogue init --client cursor --scope project', 'Add it for the current project'],
    ['polylogue init --client zed --env OPENAI_API_KEY', "Store a key's value in the host's configuration"],
    ['polylogue init --client codex --offline', 'Global flags become part of the entry'],
    ['polylogue init --client claude --bridge', 'Share one daemon between all hosts'],
    ['polylogue init --client claude --remove', 'Remove it again'],
  ],
  async run(context) {
    const host = hostOf(context);
    const name = nameOf(context);
    const file = fileOf(host, name, pathOf(context, host));
    const act = isOn(context.flags, 'remove') ? remove : install;
    return named(file, () => act(context, host, name, file));
  },
});

function hostOf({ flags }: CommandContext): HostDefinition {
  const host = hosts.find(candidate => candidate.name === textFlag(flags, 'client'));
  if (host) return host;
  throw inputError('Missing --client: which MCP host?', {
    next: `Choose one of ${clients.join(', ')}. Example: polylogue init --client claude`,
  });
}

function nameOf({ flags }: CommandContext): string {
  const name = textFlag(flags, 'name') ?? 'polylogue';
  if (/^[a-z0-9][a-z0-9-]{0,59}$/i.test(name)) return name;
  throw inputError(`Invalid server name "${name}".`, { next: 'Use up to 60 letters, digits and dashes.' });
}

function pathOf({ flags, environment, env }: CommandContext, host: HostDefinition): string {
  if (textFlag(flags, 'scope') !== 'project') return host.user({ ...environment, env });
  if (host.project !== undefined) return join(environment.cwd, host.project);
  throw inputError(`${host.title} has no project-level MCP configuration.`, { next: 'Leave out --scope project.' });
}

function install(context: CommandContext, host: HostDefinition, name: string, file: ConfigFile): number {
  const { config, env, flags, launch, out, environment: machine } = context;
  const environment = serverEnvironment({ config, env, copied: listFlag(flags, 'env'), refers: host.refers });
  const { values, references, args } = environment;
  // What npx, "pnpm dlx", "yarn dlx" and bunx run is kept at one version, and not for long.
  const [command, ...program] = /[\\/](_npx|dlx(-\d+)?|\.?bunx-[^\\/]+)[\\/]/.test(launch.program)
    ? ['npx', '-y', 'polylogue']
    : [lasting(launch.node), lasting(launch.program)];
  const started = [...program, ...(isOn(flags, 'bridge') ? ['connect'] : []), ...args];
  // The server keeps within the limit that the entry gives a call, unless the operator said otherwise.
  const patience = host.patienceSeconds && { CALL_PATIENCE_SECONDS: String(host.patienceSeconds) };
  const entry = host.entry({ command, args: started, values: { ...patience, ...values }, references });
  const text = withEntry(host, file.text ?? '', name, entry, Object.keys(values));
  const dry = isOn(flags, 'dry-run');
  const unchanged = text === file.text;
  const backup =
    dry || unchanged ? undefined : replaceConfigFile(file, text, machine.clock.now(), !isOurs(host, name, file));
  const shown = masked(entry, values, context);
  const [outcome, words] = dry
    ? ['would_write', `Would write "${name}" to`]
    : unchanged
      ? ['unchanged', `Already there: "${name}" in`]
      : ['written', `Wrote "${name}" to`];
  const names = { copied: Object.keys(values), referenced: references, not_passed: environment.missing };
  out.document({ ...report(outcome, host, file, backup), entry: shown, ...names });
  out.line(`${words} ${file.path}`);
  if (dry) out.line(withEntry(host, '', name, shown, []).trimEnd());
  if (backup) out.line(`Backup: ${backup}`);
  for (const line of advice(context, host, environment)) out.line(line);
  if (dry) return 0;
  out.line(host.next);
  if (host.permission) out.line(host.permission(name));
  return 0;
}

/** The path under which Homebrew leads to the version that is installed. */
const lasting = (path: string): string => path.replace(/\/Cellar\/([^/]+)\/[^/]+\//, '/opt/$1/');

/** Whether init began the file and nobody else has put anything into it: then nothing in it has to be kept. */
function isOurs(host: HostDefinition, name: string, file: ConfigFile): boolean {
  const { text } = file;
  if (text === undefined || !hasEntry(host, text, name) || namesUrl(host, text, name)) return false;
  if (backupsOf(file).length > 0) return false;
  return withoutEntry(host, text, name, ['']) === '';
}

function remove(context: CommandContext, host: HostDefinition, name: string, file: ConfigFile): number {
  const { flags, out, environment } = context;
  const { text } = file;
  const dry = isOn(flags, 'dry-run');
  if (text === undefined || !hasEntry(host, text, name)) {
    out.document(report('absent', host, file, undefined));
    out.line(`No entry "${name}" in ${file.path}; nothing changed.`);
    return 0;
  }
  const former = backupsOf(file);
  // Without a backup, init began the file, and an empty text stands for none.
  const rest = withoutEntry(host, text, name, former.length > 0 ? former : ['']);
  const next = rest === '' && former.length === 0 ? undefined : rest;
  const backup = dry ? undefined : replaceConfigFile(file, next, environment.clock.now(), next !== undefined);
  out.document(report(dry ? 'would_remove' : 'removed', host, file, backup));
  out.line(`${dry ? 'Would remove' : 'Removed'} "${name}" from ${file.path}`);
  if (backup) out.line(`Backup: ${backup}`);
  return 0;
}

function report(outcome: string, host: HostDefinition, { path }: ConfigFile, backup: string | undefined): JsonObject {
  return { status: 'success', outcome, client: host.name, path, backup };
}

/** The entry as it may be shown: values that were copied could be keys. */
function masked(entry: JsonObject, values: ServerEnvironment['values'], { flags }: CommandContext): JsonObject {
  const copied = listFlag(flags, 'env').map(name => values[name]);
  const hidden = (_key: string, value: unknown) => (typeof value === 'string' && copied.includes(value) ? '…' : value);
  return JSON.parse(JSON.stringify(entry, hidden));
}

function advice({ config, flags }: CommandContext, host: HostDefinition, found: ServerEnvironment): string[] {
  const { values, references, missing } = found;
  const copied = Object.keys(values);
  const lines = [
    references.length > 0 &&
      `${host.title} takes ${references.join(', ')} from its own environment when it starts the server; ` +
        'started from a desktop it may have none: then repeat with --env NAME, which writes the value into the file.',
    copied.length > 0 &&
      `The file ${isOn(flags, 'dry-run') ? 'would contain' : 'now contains'} the value of ${copied.join(', ')}.`,
    flags.scope === 'project' && flags.env !== undefined && 'Do not commit this file: it contains keys.',
    missing.length > 0 &&
      `${missing.join(', ')} is set here, but ${host.title} cannot refer to it, and its value was not written unasked. ` +
        `Repeat with ${missing.map(name => `--env ${name}`).join(' ')}, or put it into ${config.home}/.env, which is read wherever Polylogue is started.`,
    !found.keyed && found.ownServer && 'No key is needed where your own server wants none.',
    !(found.keyed || found.ownServer || config.values.app.offline) &&
      `No API key is set. Add one to ${config.home}/.env, for example OPENAI_API_KEY=…, or set it in the environment and run init again.`,
  ];
  return lines.filter(line => line !== false);
}
