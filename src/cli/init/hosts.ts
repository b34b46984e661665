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

/** Typed identity; a host is one file that exports one of these. */
export function defineHost(definition: HostDefinition): HostDefinition {
  return definition;
}

/** Values and references in one table, the way most hosts want them. */
export function envTable(server: ServerEntry, reference: (name: string) => string): JsonObject | undefined {
  const table = {
    ...server.values,
    ...Object.fromEntries(server.references.map(name => [name, reference(name)])),
  };
  return Object.keys(table).length > 0 ? table : undefined;
}
