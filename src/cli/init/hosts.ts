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
  /** What to do in the host afterwards. */
  next: string;
}

/** A host with a JSON file, in which all entries look much the same. */
interface JsonHost extends Omit<HostDefinition, 'format' | 'key' | 'refers' | 'entry'> {
  /** `mcpServers` unless told. */
  key?: string;
  /** What an entry begins with. */
  fields?: JsonObject;
  /** How an entry names a variable; absent: it can't. */
  reference?(name: string): string;
  /** What stands for no variables; absent: nothing. */
  noVariables?: JsonObject;
}

function jsonHost({ key = 'mcpServers', fields, reference, noVariables, ...host }: JsonHost): HostDefinition {
  return {
    ...host,
    format: 'json',
    key,
    refers: reference !== undefined,
    entry({ command, args, values, references }) {
      const referred = reference ? references.map(name => [name, reference(name)]) : [];
      const variables = { ...values, ...Object.fromEntries(referred) };
      const env = Object.keys(variables).length > 0 ? variables : noVariables;
      return { ...fields, command, args, env };
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
    tool_timeout_sec: 600,
  }),
  next: 'Start Codex anew; /mcp shows the server.',
};

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

const gemini = jsonHost({
  name: 'gemini',
  title: 'Gemini CLI',
  files: {
    user: ({ homeDir }) => join(homeDir, '.gemini', 'settings.json'),
    project: ({ project }) => join(project, '.gemini', 'settings.json'),
  },
  reference: name => `\${${name}}`,
  next: 'Start Gemini CLI anew; /mcp shows the server.',
});

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

export const hosts = [augment, claude, codex, cursor, gemini, vscode, windsurf, zed] as const;
