import { join } from 'node:path';
import type { JsonObject } from '../../core/json.ts';

/** Whether an entry is for all projects of a user or for one. */
export type Scope = 'user' | 'project';

/** Where a host's files are looked for. */
export interface HostPlace {
  homeDir: string;
  platform: string;
  /** The project directory. */
  project: string;
  env: Readonly<Record<string, string | undefined>>;
}

/** How a host is to start the server. */
export interface ServerEntry {
  command: string;
  args: string[];
  /** Variables with their values. */
  values: Readonly<Record<string, string>>;
  /** Variables that the host takes from its own environment when it starts the server. */
  references: readonly string[];
}

/** One MCP host: where its configuration lies and what an entry looks like there. */
export interface HostDefinition {
  /** As `--client` takes it. */
  name: string;
  title: string;
  format: 'json' | 'toml';
  /** The table of servers within the file. */
  key: string;
  /** The file by scope; a scope that the host does not know is left out. */
  files: Partial<Record<Scope, (place: HostPlace) => string>>;
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

const augment = jsonHost({
  name: 'augment',
  title: 'Augment (Auggie)',
  files: { user: ({ homeDir }) => join(homeDir, '.augment', 'settings.json') },
  fields: { type: 'stdio' },
  // Nothing says that it expands references, so that it is given none.
  next: 'Start auggie anew; /mcp shows the server.',
});

const claude = jsonHost({
  name: 'claude',
  title: 'Claude Code',
  files: {
    user: ({ homeDir, env }) => join(env.CLAUDE_CONFIG_DIR || homeDir, '.claude.json'),
    project: ({ project }) => join(project, '.mcp.json'),
  },
  fields: { type: 'stdio' },
  // Without a default, an unset variable would arrive as the text of its reference.
  reference: name => `\${${name}:-}`,
  next: 'Start Claude Code anew; /mcp shows the server.',
  permission: name =>
    `It asks before it runs a tool; to allow them all, add "mcp__${name}" to permissions.allow in its settings.json, or start it with --allowedTools mcp__${name}.`,
});

const codex: HostDefinition = {
  name: 'codex',
  title: 'Codex',
  format: 'toml',
  key: 'mcp_servers',
  files: {
    user: ({ homeDir, env }) => join(env.CODEX_HOME || join(homeDir, '.codex'), 'config.toml'),
    project: ({ project }) => join(project, '.codex', 'config.toml'),
  },
  refers: true,
  entry: ({ command, args, values, references }) => ({
    command,
    args,
    env_vars: references.length > 0 ? [...references] : undefined,
    env: Object.keys(values).length > 0 ? { ...values } : undefined,
    // Its own limit is a minute, and models that reason take longer.
    tool_timeout_sec: longCall.seconds,
  }),
  patienceSeconds: longCall.patience,
  next: 'Start Codex anew; /mcp shows the server.',
  permission: name =>
    `"codex exec" refuses tools that may change something: default_tools_approval_mode = "approve" under [mcp_servers.${name}] allows them, and required = true keeps it from beginning without the server.`,
};

const cline = jsonHost({
  name: 'cline',
  title: 'Cline',
  files: {
    user: ({ homeDir, env }) =>
      join(env.CLINE_DATA_DIR || join(homeDir, '.cline', 'data'), 'settings', 'cline_mcp_settings.json'),
  },
  limits: { timeout: longCall.seconds },
  patienceSeconds: longCall.patience,
  next: 'Start Cline anew. Its extension for VS Code opens a file of its own with "Configure MCP Servers": copy the entry there.',
  permission: () => 'It asks before it runs a tool; "autoApprove" in the entry lists those that it need not ask for.',
});

const copilot = jsonHost({
  name: 'copilot',
  title: 'Copilot CLI',
  files: {
    user: ({ homeDir, env }) => join(env.COPILOT_HOME || join(homeDir, '.copilot'), 'mcp-config.json'),
    project: ({ project }) => join(project, '.github', 'mcp.json'),
  },
  fields: { type: 'local' },
  limits: { tools: ['*'] },
  reference: name => `\${${name}}`,
  next: 'Start Copilot CLI anew; /mcp show lists the server.',
  permission: name => `It asks before it runs a tool; to allow them all, start it with --allow-tool ${name}.`,
});

const cursor = jsonHost({
  name: 'cursor',
  title: 'Cursor',
  files: {
    user: ({ homeDir }) => join(homeDir, '.cursor', 'mcp.json'),
    project: ({ project }) => join(project, '.cursor', 'mcp.json'),
  },
  fields: { type: 'stdio' },
  reference: name => `\${env:${name}}`,
  next: 'Cursor Settings, MCP: the server is listed there; switch it on.',
});

const trust =
  'It starts no server in a folder that it does not trust: /permissions shows that, and "trust": true in the entry runs the tools unasked.';

const gemini = jsonHost({
  name: 'gemini',
  title: 'Gemini CLI',
  files: {
    user: ({ homeDir }) => join(homeDir, '.gemini', 'settings.json'),
    project: ({ project }) => join(project, '.gemini', 'settings.json'),
  },
  reference: name => `\${${name}}`,
  next: 'Start Gemini CLI anew; /mcp shows the server.',
  permission: () => trust,
});

const qwen = jsonHost({
  name: 'qwen',
  title: 'Qwen Code',
  files: {
    user: ({ homeDir, env }) => join(env.QWEN_HOME || join(homeDir, '.qwen'), 'settings.json'),
    project: ({ project }) => join(project, '.qwen', 'settings.json'),
  },
  limits: { timeout: longCall.seconds * 1_000 },
  reference: name => `\${${name}}`,
  patienceSeconds: longCall.patience,
  next: 'Start Qwen Code anew; /mcp shows the server.',
  permission: () => trust,
});

const opencode: HostDefinition = {
  name: 'opencode',
  title: 'OpenCode',
  format: 'json',
  key: 'mcp',
  files: {
    user: ({ homeDir, env }) => join(env.XDG_CONFIG_HOME || join(homeDir, '.config'), 'opencode', 'opencode.json'),
    project: ({ project }) => join(project, 'opencode.json'),
  },
  refers: true,
  entry: ({ command, args, values, references }) => ({
    type: 'local',
    command: [command, ...args],
    environment: { ...values, ...Object.fromEntries(references.map(name => [name, `{env:${name}}`])) },
    // Its own limit is five seconds.
    timeout: longCall.seconds * 1_000,
  }),
  patienceSeconds: longCall.patience,
  next: 'Start OpenCode anew; "opencode mcp list" shows the server.',
};

const vscode = jsonHost({
  name: 'vscode',
  title: 'VS Code',
  key: 'servers',
  files: {
    user: place => join(userFolder(place), 'mcp.json'),
    project: ({ project }) => join(project, '.vscode', 'mcp.json'),
  },
  fields: { type: 'stdio' },
  reference: name => `\${env:${name}}`,
  next: 'Run "MCP: List Servers" in VS Code and start the server.',
});

function userFolder({ homeDir, platform, env }: HostPlace): string {
  switch (platform) {
    case 'darwin':
      return join(homeDir, 'Library', 'Application Support', 'Code', 'User');
    case 'win32':
      return join(env.APPDATA || join(homeDir, 'AppData', 'Roaming'), 'Code', 'User');
    default:
      return join(env.XDG_CONFIG_HOME || join(homeDir, '.config'), 'Code', 'User');
  }
}

const windsurf = jsonHost({
  name: 'windsurf',
  title: 'Windsurf',
  files: { user: ({ homeDir }) => join(homeDir, '.codeium', 'windsurf', 'mcp_config.json') },
  reference: name => `\${env:${name}}`,
  next: 'Press refresh in the MCP panel of Cascade.',
});

const zed = jsonHost({
  name: 'zed',
  title: 'Zed',
  key: 'context_servers',
  files: {
    user: place => join(settingsFolder(place), 'settings.json'),
    project: ({ project }) => join(project, '.zed', 'settings.json'),
  },
  fields: { source: 'custom' },
  // It passes the table on as it stands, so that a reference would arrive as text.
  noVariables: {},
  next: 'Zed starts the server at once; the agent panel’s settings show it.',
});

function settingsFolder({ homeDir, platform, env }: HostPlace): string {
  if (platform === 'win32') return join(env.APPDATA || join(homeDir, 'AppData', 'Roaming'), 'Zed');
  const config = platform === 'linux' ? env.XDG_CONFIG_HOME : undefined;
  return join(config || join(homeDir, '.config'), 'zed');
}

export const hosts: readonly HostDefinition[] = [
  augment,
  claude,
  cline,
  codex,
  copilot,
  cursor,
  gemini,
  opencode,
  qwen,
  vscode,
  windsurf,
  zed,
];
