/** What the files of one top folder may import. Paths are relative to src/: a top folder, a folder in it, or a file. */
export interface Layer {
  imports: readonly string[];
  /** What may be imported with `import type` only. */
  types?: readonly string[];
  /**
   * Folder → the folders and files of the same top folder that it may import. `.` means files directly in the top folder, `*`
   * any folder without a row of its own.
   */
  inner?: Readonly<Record<string, readonly string[]>>;
  /** The files do not import each other; only the generated list imports them. */
  apart?: true;
}

/** The rules of the source tree as data. */
export interface StructureRules {
  /** Where these rules are, for messages. */
  file: string;
  /** Top folder → what it may import. A test compares the folders with the table of docs/architecture.md. */
  layers: Readonly<Record<string, Layer>>;
  /** Files with a row of their own, which replaces the row of their folder. */
  files: Readonly<Record<string, Pick<Layer, 'imports' | 'types'>>>;
  /** Files that are loaded with `import()` only → files that may import them directly, because they are loaded with them. */
  lazy: Readonly<Record<string, readonly string[]>>;
  /** Programs of worker threads, which are started by their path. */
  workers: readonly string[];
  /** npm package, or `@scope/*` → who may import it. An empty list: every file. */
  packages: Readonly<Record<string, readonly string[]>>;
  /** Builtin module with its subpaths → who may import it. An empty list: every file. */
  builtins: Readonly<Record<string, readonly string[]>>;
  /** Top folders that receive environment, time, randomness and output as parameters. */
  pure: readonly string[];
  /** Files in them that wait by the timers of the machine all the same. */
  timers: readonly string[];
  bannedWords: readonly string[];
  /** Maximum lines of a file that is not generated. */
  lines: number;
  /** Maximum folders below src/, counted downwards. */
  depth: number;
  /** Folders with another maximum. */
  deeper: readonly { folder: string; depth: number }[];
  /** Exact number of files under `lines` lines that only one file of their folder imports. It may only fall. */
  foldable: { lines: number; files: number };
  /** Maximum files and hand-written lines below src/. */
  budgets: { files: number; lines: number };
  /** Maximum files, folders and functions of src/ that run in one call, measured by scripts/trace-call.ts. */
  traceBudget: Record<'chat' | 'debug', { files: number; folders: number; functions: number }>;
}

/** Returns the row of an inner folder; undefined for an unknown one. */
export function innerRow(inner: NonNullable<Layer['inner']>, folder: string): readonly string[] | undefined {
  return inner[folder] ?? (folder === '.' ? undefined : inner['*']);
}

const pure = 'core config observability workspace storage threads models providers calls tools engine'.split(' ');

const layers: StructureRules['layers'] = {
  core: { imports: [] },
  config: { imports: ['core'], inner: { '.': ['options'], options: [] } },
  observability: { imports: ['core'] },
  workspace: {
    imports: ['core'],
    inner: {
      '.': [],
      outline: [],
      git: ['.'],
      'call-graph': ['.', 'outline'],
      workers: ['.', 'outline', 'call-graph'],
      'search-index': ['.', 'outline', 'workers'],
    },
  },
  storage: {
    imports: ['core'],
    inner: { '.': [], memory: ['.', 'sqlite'], redis: ['.'], sqlite: ['.'], '*': ['.', 'memory'] },
  },
  threads: { imports: ['core'], types: ['storage/store.ts'], inner: { '.': [], transfer: ['.'] } },
  models: {
    imports: ['core'],
    inner: {
      '.': [],
      resilience: ['.'],
      routing: ['.'],
      catalogue: ['.', 'resilience', 'routing'],
      call: ['.', 'catalogue', 'resilience', 'routing'],
    },
  },
  providers: {
    imports: ['core', 'models', 'workspace/process-tree.ts', 'workspace/programs.ts'],
    inner: {
      '.': ['google', 'moonshot', 'ollama', 'shared', 'zhipu'],
      shared: [],
      google: ['shared'],
      moonshot: ['shared'],
      ollama: ['shared'],
      zhipu: ['shared'],
      'external-cli': ['shared'],
    },
  },
  calls: {
    imports: ['core', 'models', 'threads', 'workspace'],
    types: ['storage/store.ts'],
    inner: { '.': [], ask: ['.'], durable: ['.'], actions: ['.', 'durable/jobs.ts'] },
  },
  tools: { imports: ['core', 'calls/tool.ts', 'calls/fields.ts'], apart: true },
  engine: {
    imports: [
      'core',
      'calls',
      'models',
      'providers/external-cli/cli-registry.ts',
      'providers/external-cli/contract.ts',
      'threads',
      'workspace',
    ],
    types: ['storage/store.ts'],
    inner: { '.': ['modes'], modes: [] },
  },
  server: {
    imports: ['core'],
    inner: {
      access: [],
      mcp: ['access'],
      http: ['access', 'mcp'],
      websocket: ['access', 'http', 'mcp'],
      'mcp-http': ['access', 'http', 'mcp'],
      dashboard: ['access', 'http'],
      daemon: ['access', 'http', 'mcp', 'mcp-http'],
      proxy: ['access', 'daemon/health-file.ts', 'mcp'],
    },
  },
  app: { imports: [...pure, 'server'], inner: { '.': [], library: ['.'] } },
  cli: {
    imports: ['core', 'config', 'app'],
    inner: {
      '.': ['command', 'commands'],
      command: [],
      commands: ['command', 'doctor', 'init'],
      doctor: ['command'],
      init: [],
    },
  },
};

const files: StructureRules['files'] = {
  'main.ts': { imports: ['cli/program.ts', 'code-cache.ts'] },
  'code-cache.ts': { imports: ['core/errors.ts'] },
  'index.ts': {
    imports: [
      'app/library/polylogue.ts',
      'calls/fields.ts',
      'calls/tool.ts',
      'core',
      'models/provider.ts',
      'providers/shared/openai-dialect.ts',
      'storage/memory/memory.ts',
      'storage/store.ts',
    ],
    types: [
      'app/extensions.ts',
      'app/library',
      'calls/action-context.ts',
      'engine/modes/agent/agent.ts',
      'engine/modes/agent/local-tools/agent-tool.ts',
    ],
  },
  'core/version.ts': { imports: ['../package.json'] },
};

const lazy: StructureRules['lazy'] = {
  'app/compose-daemon.ts': [],
  'app/compose-product.ts': [],
  'app/extensions.ts': [],
  'cli/command/markdown.ts': [],
  'cli/program.ts': [],
  'cli/run-command-line.ts': [],
  'engine/conversation.ts': [],
  'engine/modes/agent/local-tools/fetch-tool.ts': [],
  'engine/modes/agent/local-tools/local-tools.ts': ['engine/modes/agent/runner.ts'],
  'engine/modes/agent/runner.ts': [],
  'engine/modes/diagnose/diagnose.ts': [],
  'models/call/replay.ts': [],
  'observability/exchange-log.ts': [],
  'observability/tracing.ts': [],
  'providers/external-cli/ask-cli.ts': [],
  'providers/external-cli/cli-model.ts': [],
  'providers/external-cli/run-cli.ts': ['providers/external-cli/ask-cli.ts'],
  'providers/google/context-cache.ts': [],
  'providers/shared/offline-model.ts': [],
  'server/proxy/proxy.ts': [],
  'storage/redis/redis.ts': [],
  'threads/transfer/export-jsonl.ts': [],
  'threads/transfer/import-jsonl.ts': [],
  'threads/transfer/readable.ts': ['app/compose-daemon.ts'],
  'workspace/call-graph/trace-sources.ts': [],
  'workspace/client-roots.ts': [],
  'workspace/git/check-patch.ts': [],
  'workspace/workers/count-tokens.ts': [],
  'workspace/workers/run-job.ts': ['workspace/search-index/index-worker.ts', 'workspace/workers/worker.ts'],
};

const packages: StructureRules['packages'] = {
  zod: [],
  '@ai-sdk/provider': ['models', 'providers'],
  'eventsource-parser': ['providers/shared/one-pass.ts'],
  '@ai-sdk/*': ['providers'],
  '@openrouter/*': ['providers/openrouter.ts'],
  'fastest-levenshtein': ['calls/arguments.ts', 'models/routing'],
  fflate: ['workspace/workers/document-text.ts'],
  unpdf: ['workspace/workers/document-text.ts'],
  'gpt-tokenizer': ['workspace/workers/count-tokens.ts'],
  '@redis/client': ['storage/redis'],
  '@modelcontextprotocol/client': ['engine/modes/agent/mcp-servers.ts', 'engine/conversation.ts'],
  '@modelcontextprotocol/server': ['server/mcp', 'server/mcp-http', 'server/websocket'],
  ws: ['server/proxy', 'server/websocket'],
  execa: ['workspace/git/run-git.ts', 'workspace/process-tree.ts'],
  jsonrepair: ['calls/reply.ts'],
  ignore: ['workspace/ignore-rules.ts'],
  diff: ['workspace/diff.ts', 'workspace/git'],
  'web-tree-sitter': ['workspace/outline'],
  '@opentelemetry/*': ['observability/tracing.ts'],
  'js-yaml': ['config/definition-files.ts'],
  commander: ['cli/run-command-line.ts'],
  markdansi: ['cli/command/markdown.ts'],
  'jsonc-parser': ['cli/init/edit-config.ts'],
  'toml-eslint-parser': ['cli/init/edit-toml.ts'],
};

const localTools = 'engine/modes/agent/local-tools';

const builtins: StructureRules['builtins'] = {
  'node:buffer': [],
  'node:crypto': [],
  'node:path': [],
  'node:stream': [],
  'node:string_decoder': [],
  'node:timers': [],
  'node:url': [],
  'node:util': [],
  // Grammars are packed, and answers may be; kept code has a checksum.
  'node:zlib': ['workspace/outline', 'models/resilience/bounded-body.ts', 'code-cache.ts'],
  'node:events': ['cli/command', 'server/daemon', 'server/proxy'],
  'node:fs': [
    'code-cache.ts',
    'server/dashboard/page.ts',
    'app/system-environment.ts',
    'calls/durable',
    'cli',
    'config',
    // Data of the package itself, no file of the user.
    'core/tokens.ts',
    'models/routing/freshness.ts',
    'observability',
    'providers/external-cli',
    'server/daemon',
    'server/proxy',
    'storage',
    'workspace',
    localTools,
  ],
  'node:os': ['app', 'cli/commands/demo.ts', localTools, 'workspace/write-file.ts'],
  'node:child_process': [
    'cli/doctor',
    'server/proxy',
    'workspace/git/run-git.ts',
    'workspace/process-tree.ts',
    localTools,
  ],
  'node:worker_threads': ['code-cache.ts', 'storage/sqlite', 'workspace/search-index', 'workspace/workers'],
  'node:sqlite': ['storage/memory', 'storage/sqlite', 'workspace/search-index'],
  'node:dns': [localTools],
  'node:net': ['models/provider.ts', 'server/access', 'server/daemon', localTools],
  'node:tls': ['app/system-environment.ts'],
  'node:http': [
    'app/system-environment.ts',
    'server/daemon',
    'server/http',
    'server/proxy',
    'server/websocket',
    localTools,
  ],
  'node:https': ['server/proxy', localTools],
  'node:readline': ['cli/commands', 'cli/doctor'],
  'node:module': ['app/extensions.ts', 'code-cache.ts', 'main.ts', 'storage/sqlite/tables.ts'],
  // The flags of its memory (docs/decisions/2026-11-23-store-records.md).
  'node:v8': ['code-cache.ts', 'server/access/limits.ts'],
  // docs/decisions/2026-11-21-vendor-http.md
  'node:diagnostics_channel': ['models/resilience/bounded-fetch.ts'],
  // docs/decisions/2026-11-28-code-cache.md
  'node:vm': ['code-cache.ts'],
};

export const rules: StructureRules = {
  file: 'scripts/structure/rules.ts',
  layers,
  files,
  lazy,
  workers: ['storage/sqlite/writer.ts', 'workspace/search-index/index-worker.ts', 'workspace/workers/worker.ts'],
  packages,
  builtins,
  pure,
  // Milliseconds between the pieces of what a socket brings; stands for fetch, which has no clock either.
  timers: ['models/resilience/bounded-body.ts'],
  bannedWords: [
    'util',
    'utils',
    'helper',
    'helpers',
    'common',
    'base',
    'manager',
    'unified',
    'enhanced',
    'legacy',
    'v2',
  ],
  lines: 400,
  depth: 3,
  deeper: [{ folder: 'engine/modes', depth: 4 }],
  foldable: { lines: 60, files: 0 },
  // Of them 428 of CSS, browser JavaScript and two JSON tables.
  budgets: { files: 456, lines: 74_444 },
  traceBudget: { chat: { files: 90, folders: 20, functions: 853 }, debug: { files: 95, folders: 21, functions: 938 } },
};
