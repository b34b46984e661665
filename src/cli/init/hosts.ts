import { join } from 'node:path';
import type { Environment, MachineEnvironment } from '../../config/home.ts';
import type { JsonObject } from '../../core/json.ts';

/** Where a host's files are looked for. */
type HostPlace = Pick<MachineEnvironment, 'homeDir' | 'platform'> & { env: Environment };

/** How a host is to start the server; `references` are variables that it takes from its own environment then. */
interface ServerEntry {
  command: string;
  args: string[];
  values: Record<string, string>;
  references: string[];
}

/** One MCP host: where its configuration lies and what an entry looks like there. */
export interface HostDefinition {
  /** As `--client` takes it. */
  name: string;
  title: string;
  format: 'json' | 'toml';
  /** The table of servers within the file. */
  key: string;
  /** The file for all projects of a user. */
  user(place: HostPlace): string;
  /** The file for one, from its directory on; absent: the host knows none. */
  project?: string;
  /** Whether it also reads a file of the same name that ends in `.jsonc`, which overrides this one. */
  readsJsonc?: boolean;
  /** Whether an entry can name a variable without holding its value. */
  refers: boolean;
  entry(server: ServerEntry): JsonObject;
  /** Seconds after which a call goes on as a job, for a host whose own limit the entry sets; others are known by their name. */
  patienceSeconds?: number;
  /** What to do in the host afterwards. */
  next: string;
  /** What it needs to let the tools of an entry of this name run. */
  permission?(name: string): string;
}

/** A limit for one call that leaves time to models that reason, and what the server keeps to: a little less. */
const longCall = { seconds: 600, patience: 550 };

/** A host with a JSON file, in which all entries look much the same. */
interface JsonHost extends Omit<HostDefinition, 'format' | 'key' | 'refers' | 'entry'> {
  /** `mcpServers` unless told. */
  key?: string;
  /** What an entry begins with. */
  fields?: JsonObject;
  /** What an entry ends with: limits, what is offered. */
  limits?: JsonObject;
  /** How an entry names a variable; absent: it can't. */
  reference?(name: string): string;
  /** What stands for no variables; absent: nothing. */
  noVariables?: JsonObject;
}

/** A file in a folder of the user's, which a variable may have moved elsewhere. */
function inHome(folder: string, file: string, variable?: string): HostDefinition['user'] {
  return ({ homeDir, env }) => join((variable && env[variable]) || join(homeDir, folder), file);
}

function jsonHost({ key = 'mcpServers', fields, limits, reference, noVariables, ...host }: JsonHost): HostDefinition {
  return {
    ...host,
    format: 'json',
    key,
    refers: reference !== undefined,
    entry({ command, args, values, references }) {
      const referred = reference ? references.map(name => [name, reference(name)]) : [];
      const variables = { ...values, ...Object.fromEntries(referred) };
      const env = Object.keys(variables).length > 0 ? variables : noVariables;
      return { ...fields, command, args, env, ...limits };
    },
  };
}

const trust =
  'It starts no server in a directory that it does not trust: /permissions shows that, and "trust": true in the entry runs the tools unasked.';

/** The folder of the user's settings; `onMac`: the one that the host takes there. */
function settingsFolder({ homeDir, platform, env }: HostPlace, onMac: string): string {
  if (platform === 'win32') return env.APPDATA || join(homeDir, 'AppData', 'Roaming');
  if (platform === 'darwin') return join(homeDir, onMac);
  return env.XDG_CONFIG_HOME || join(homeDir, '.config');
}

export const hosts: readonly HostDefinition[] = [
  jsonHost({
    name: 'augment',
    title: 'Augment (Auggie)',
    user: inHome('.augment', 'settings.json'),
    fields: { type: 'stdio' },
    // Nothing says that it expands references, so that it is given none.
    next: 'Restart auggie, then run /mcp to check.',
  }),
  jsonHost({
    name: 'claude',
    title: 'Claude Code',
    user: inHome('', '.claude.json', 'CLAUDE_CONFIG_DIR'),
    project: '.mcp.json',
    fields: { type: 'stdio' },
    // Without a default, an unset variable would arrive as the text of its reference.
    reference: name => `\${${name}:-}`,
    next: 'Restart Claude Code, then run /mcp to check.',
    permission: name =>
      `It asks before it runs a tool; to allow them all, add "mcp__${name}" to permissions.allow in its settings.json, or start it with --allowedTools mcp__${name}.`,
  }),
  jsonHost({
    name: 'cline',
    title: 'Cline',
    user: inHome('.cline/data', 'settings/cline_mcp_settings.json', 'CLINE_DATA_DIR'),
    limits: { timeout: longCall.seconds },
    patienceSeconds: longCall.patience,
    next: 'Restart Cline. Its VS Code extension uses another file, which "Configure MCP Servers" opens: copy the entry there.',
    permission: () => 'It asks before it runs a tool; "autoApprove" in the entry lists those that it need not ask for.',
  }),
  {
    name: 'codex',
    title: 'Codex',
    format: 'toml',
    key: 'mcp_servers',
    user: inHome('.codex', 'config.toml', 'CODEX_HOME'),
    project: '.codex/config.toml',
    refers: true,
    entry: ({ command, args, values, references }) => ({
      command,
      args,
      env_vars: references.length > 0 ? references : undefined,
      env: Object.keys(values).length > 0 ? values : undefined,
      // Its own limit is a minute, and models that reason take longer.
      tool_timeout_sec: longCall.seconds,
    }),
    patienceSeconds: longCall.patience,
    next: 'Restart Codex, then run /mcp to check.',
    permission: name =>
      `"codex exec" refuses tools that may change something: default_tools_approval_mode = "approve" under [mcp_servers.${name}] allows them, and required = true keeps it from beginning without the server.`,
  },
  jsonHost({
    name: 'copilot',
    title: 'Copilot CLI',
    user: inHome('.copilot', 'mcp-config.json', 'COPILOT_HOME'),
    project: '.github/mcp.json',
    fields: { type: 'local' },
    limits: { tools: ['*'] },
    reference: name => `\${${name}}`,
    next: 'Restart Copilot CLI; /mcp show lists the server.',
    permission: name => `It asks before it runs a tool; to allow them all, start it with --allow-tool ${name}.`,
  }),
  jsonHost({
    name: 'cursor',
    title: 'Cursor',
    user: inHome('.cursor', 'mcp.json'),
    project: '.cursor/mcp.json',
    fields: { type: 'stdio' },
    reference: name => `\${env:${name}}`,
    next: 'Open Cursor Settings > MCP and turn the server on.',
  }),
  jsonHost({
    name: 'gemini',
    title: 'Gemini CLI',
    user: inHome('', '.gemini/settings.json', 'GEMINI_CLI_HOME'),
    project: '.gemini/settings.json',
    reference: name => `\${${name}}`,
    next: 'Restart Gemini CLI, then run /mcp to check.',
    permission: () => trust,
  }),
  {
    name: 'opencode',
    title: 'OpenCode',
    format: 'json',
    key: 'mcp',
    user: inHome('.config', 'opencode/opencode.json', 'XDG_CONFIG_HOME'),
    project: 'opencode.json',
    readsJsonc: true,
    refers: true,
    entry: ({ command, args, values, references }) => ({
      type: 'local',
      command: [command, ...args],
      environment: { ...values, ...Object.fromEntries(references.map(name => [name, `{env:${name}}`])) },
      // Its own limit is five seconds.
      timeout: longCall.seconds * 1_000,
    }),
    patienceSeconds: longCall.patience,
    next: 'Restart OpenCode; "opencode mcp list" shows the server.',
  },
  jsonHost({
    name: 'qwen',
    title: 'Qwen Code',
    user: inHome('.qwen', 'settings.json', 'QWEN_HOME'),
    project: '.qwen/settings.json',
    limits: { timeout: longCall.seconds * 1_000 },
    reference: name => `\${${name}}`,
    patienceSeconds: longCall.patience,
    next: 'Restart Qwen Code; /mcp shows the server.',
    permission: () => trust,
  }),
  jsonHost({
    name: 'vscode',
    title: 'VS Code',
    key: 'servers',
    user: place => join(settingsFolder(place, 'Library/Application Support'), 'Code/User/mcp.json'),
    project: '.vscode/mcp.json',
    fields: { type: 'stdio' },
    reference: name => `\${env:${name}}`,
    next: 'Run "MCP: List Servers" in VS Code and start the server.',
  }),
  jsonHost({
    name: 'windsurf',
    title: 'Windsurf',
    user: inHome('.codeium/windsurf', 'mcp_config.json'),
    reference: name => `\${env:${name}}`,
    next: 'Click Refresh in the MCP panel of Cascade.',
  }),
  jsonHost({
    name: 'zed',
    title: 'Zed',
    key: 'context_servers',
    user: place => join(settingsFolder(place, '.config'), place.platform === 'win32' ? 'Zed' : 'zed', 'settings.json'),
    project: '.zed/settings.json',
    fields: { source: 'custom' },
    // It passes the table on as it stands, so that a reference would arrive as text.
    noVariables: {},
    next: "Zed starts the server right away; check it in the agent panel's settings.",
  }),
];
