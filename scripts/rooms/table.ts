/** What one room below src/ may hold and import. Paths are relative to src/: a room, a folder or a file. */
export interface Room {
  imports: readonly string[];
  /** Its folders. A `list` folder holds like things behind one contract and grows freely. */
  folders?: Readonly<Record<string, 'list' | 'plain'>>;
  /** Files of its own when it needs more than the house's number; a comment says why. */
  files?: number;
  /** A list folder itself, whose files know nothing of each other; only the generated list imports them. */
  list?: boolean;
  /** It gets environment, time, randomness and output as parameters. */
  pure?: boolean;
}

/** A file with a rule of its own: those directly below src/, and those of wire/, which app.ts is made of. */
export interface Door {
  imports: readonly string[];
  /** What it may import by `import()` only. */
  lazyImports?: readonly string[];
  lines?: number;
}

/** The rules of the house as data: `findViolations` holds the source against them. */
export interface HouseTable {
  rooms: Readonly<Record<string, Room>>;
  doors: Readonly<Record<string, Door>>;
  /** npm package, or `@scope/*` → who may import it. An empty list: everybody. */
  packages: Readonly<Record<string, readonly string[]>>;
  /** Builtin module (its subpaths included) → who may import it. An empty list: everybody. */
  builtins: Readonly<Record<string, readonly string[]>>;
  lines: number;
  filesPerFolder: number;
  /** Folders below src/, counted downwards. */
  depth: number;
  bannedWords: readonly string[];
  /** Folders and files whose name may hold a banned word all the same. */
  nameExceptions: readonly string[];
}

const rooms: HouseTable['rooms'] = {
  // Only declarations, one word of the product a file: more of them than a room of behaviour should have.
  domain: { imports: [], folders: { estimate: 'plain' }, files: 17, pure: true },
  config: { imports: ['domain'], folders: { tables: 'list', endpoints: 'plain' }, pure: true },
  telemetry: {
    imports: ['domain'],
    folders: { sinks: 'list', log: 'plain', comms: 'plain', metrics: 'plain', traces: 'plain' },
    pure: true,
  },
  files: {
    imports: ['domain'],
    folders: {
      walk: 'plain',
      write: 'plain',
      patch: 'plain',
      outline: 'plain',
      graph: 'plain',
      'graph/report': 'plain',
      git: 'plain',
      work: 'plain',
      index: 'plain',
      'put-back': 'plain',
      roots: 'plain',
    },
    pure: true,
  },
  memory: {
    imports: ['domain'],
    folders: {
      stores: 'list',
      'shared-state': 'plain',
      summary: 'plain',
      transfer: 'plain',
      'transfer/readable': 'plain',
      upkeep: 'plain',
    },
    pure: true,
  },
  models: {
    imports: ['domain'],
    folders: {
      providers: 'list',
      routing: 'plain',
      asking: 'plain',
      // The AI manager, a term of this field.
      manager: 'plain',
      resilience: 'plain',
      'resilience/breaker': 'plain',
      sources: 'plain',
      survey: 'plain',
      fees: 'plain',
      extras: 'plain',
      'extras/ollama': 'plain',
      'extras/azure': 'plain',
      'extras/caches': 'plain',
      'extras/wire': 'plain',
      'extras/kimi': 'plain',
      'extras/glm': 'plain',
      'extras/documents': 'plain',
      'extras/embeddings': 'plain',
      'extras/upstream': 'plain',
      'extras/search': 'plain',
      'extras/programs': 'plain',
    },
    pure: true,
  },
  engine: {
    imports: ['domain', 'files', 'memory', 'models'],
    folders: {
      shapes: 'plain',
      workflow: 'plain',
      panel: 'plain',
      fanout: 'plain',
      verdicts: 'plain',
      gather: 'plain',
      routing: 'plain',
      condense: 'plain',
      answer: 'plain',
      offer: 'plain',
      jobs: 'plain',
      spend: 'plain',
      secrets: 'plain',
      transfer: 'plain',
      actions: 'plain',
      documents: 'plain',
      once: 'plain',
      diagnose: 'plain',
      converse: 'plain',
      agent: 'plain',
      'agent/hands': 'plain',
      'agent/servers': 'plain',
      'agent/web': 'plain',
      'agent/waiting': 'plain',
      bridge: 'plain',
      'bridge/clis': 'list',
      'bridge/run': 'plain',
      'bridge/output': 'plain',
    },
    pure: true,
  },
  tools: { imports: ['domain', 'engine/define.ts', 'engine/fields.ts'], list: true, pure: true },
  server: {
    imports: ['domain'],
    folders: {
      dashboard: 'plain',
      'dashboard/pages': 'plain',
      guards: 'plain',
      messages: 'plain',
      roots: 'plain',
      stdio: 'plain',
      http: 'plain',
      streamable: 'plain',
      daemon: 'plain',
      ws: 'plain',
      'ws/frames': 'plain',
      bridge: 'plain',
    },
  },
  // What programs use that import the package; it stands beside `cli`, of which it takes what knows the machine.
  library: {
    imports: [
      'domain',
      'config/settings-files.ts',
      'app.ts',
      'extensions.ts',
      'cli/surroundings.ts',
      'cli/use-proxy.ts',
      'engine/agent/agent.ts',
      'engine/converse/converse.ts',
    ],
  },
  cli: {
    imports: ['domain', 'config', 'app.ts', 'version.ts'],
    folders: { commands: 'list', hosts: 'list', init: 'plain', doctor: 'plain', demo: 'plain' },
  },
};

const doors: HouseTable['doors'] = {
  // What hosts ask for at the start, and the way to the rest.
  'app.ts': {
    imports: [
      'domain',
      'config',
      'engine/offer/early-host.ts',
      'server',
      'version.ts',
      'extensions.ts',
      'wire/product.ts',
      'wire/wire-bridge.ts',
      'wire/wire-extensions.ts',
      'wire/wire-front.ts',
      'wire/wire-roots.ts',
      'wire/wire-settings.ts',
    ],
    lazyImports: ['wire/wire-daemon.ts', 'wire/wire-product.ts'],
    lines: 150,
  },
  // Types alone.
  'wire/product.ts': {
    imports: [
      'domain',
      'files',
      'memory',
      'models',
      'engine',
      'server',
      'telemetry',
      'wire/wire-daemon.ts',
      'wire/wire-models.ts',
      'wire/wire-observed.ts',
    ],
  },
  'wire/wire-product.ts': {
    imports: [
      'engine',
      'memory',
      'version.ts',
      'wire/product.ts',
      'wire/wire-clis.ts',
      'wire/wire-engine.ts',
      'wire/wire-files.ts',
      'wire/wire-front.ts',
      'wire/wire-hosts.ts',
      'wire/wire-models.ts',
      'wire/wire-services.ts',
      'wire/wire-settings.ts',
      'wire/wire-observed.ts',
      'wire/wire-offer.ts',
    ],
    lazyImports: ['wire/wire-daemon.ts'],
    lines: 150,
  },
  // What is loaded for the start: nothing of memory, and of models and engine what says who is there and what is offered.
  'wire/wire-front.ts': {
    imports: [
      'domain',
      'extensions.ts',
      'files/default-roots.ts',
      'telemetry',
      'wire/wire-extensions.ts',
      'wire/wire-offer.ts',
      'wire/wire-roots.ts',
      'wire/wire-settings.ts',
      'wire/wire-telemetry.ts',
    ],
    lines: 150,
  },
  'wire/wire-settings.ts': { imports: ['config', 'models'], lines: 150 },
  'wire/wire-roots.ts': { imports: ['files/default-roots.ts', 'wire/wire-settings.ts'], lines: 150 },
  'wire/wire-offer.ts': {
    imports: ['domain', 'config', 'engine/define.ts', 'engine/offer', 'tools', 'wire/wire-settings.ts'],
    lines: 150,
  },
  // Parts of app.ts: settings → what one floor below is made of. Each says for itself what it joins.
  'wire/wire-actions.ts': { imports: ['config', 'engine', 'memory', 'wire/wire-engine.ts'], lines: 150 },
  'wire/wire-engine.ts': {
    imports: [
      'domain',
      'config',
      'files',
      'memory',
      'models',
      'engine',
      'wire/wire-files.ts',
      'wire/wire-settings.ts',
      'wire/wire-services.ts',
    ],
    lines: 150,
  },
  'wire/wire-clis.ts': { imports: ['domain', 'config', 'engine', 'wire/wire-settings.ts'], lines: 150 },
  'wire/wire-host.ts': {
    imports: [
      'domain',
      'config',
      'files',
      'memory',
      'models',
      'engine',
      'wire/wire-actions.ts',
      'wire/wire-agent.ts',
      'wire/wire-engine.ts',
      'wire/wire-files.ts',
      'wire/wire-offer.ts',
      'wire/wire-settings.ts',
      'wire/wire-services.ts',
    ],
    lines: 150,
  },
  'wire/wire-agent.ts': { imports: ['domain', 'config', 'files', 'engine', 'wire/wire-settings.ts'], lines: 150 },
  'wire/wire-hosts.ts': {
    imports: ['domain', 'wire/place-of-caller.ts', 'wire/wire-front.ts', 'wire/wire-host.ts', 'wire/wire-offer.ts'],
    lines: 150,
  },
  'wire/place-of-caller.ts': { imports: ['domain', 'files', 'wire/wire-host.ts'], lines: 150 },
  'wire/wire-daemon.ts': {
    imports: [
      'domain',
      'memory',
      'server',
      'config',
      'wire/wire-dashboard.ts',
      'wire/wire-hosts.ts',
      'wire/wire-settings.ts',
      'wire/wire-observed.ts',
    ],
    lines: 150,
  },
  // The product as the dashboard shows it.
  'wire/wire-dashboard.ts': {
    imports: ['domain', 'config', 'engine', 'memory', 'models', 'server', 'tools', 'wire/wire-settings.ts'],
    lines: 150,
  },
  'wire/wire-services.ts': { imports: ['domain', 'config', 'models', 'wire/wire-settings.ts'], lines: 150 },
  'wire/wire-telemetry.ts': {
    imports: ['domain', 'config', 'telemetry', 'version.ts', 'wire/wire-settings.ts'],
    lines: 150,
  },
  'wire/wire-observed.ts': { imports: ['domain', 'telemetry', 'models', 'engine'], lines: 150 },
  'wire/wire-files.ts': { imports: ['domain', 'config', 'files', 'wire/wire-settings.ts'], lines: 150 },
  'wire/wire-models.ts': { imports: ['domain', 'config', 'memory', 'models', 'wire/wire-settings.ts'], lines: 150 },
  'extensions.ts': { imports: ['engine/define.ts', 'memory/store.ts', 'models/provider.ts'] },
  'wire/wire-extensions.ts': {
    imports: ['domain', 'config', 'memory', 'tools', 'extensions.ts', 'wire/wire-settings.ts'],
    lazyImports: ['wire/load-extensions.ts'],
    lines: 150,
  },
  'wire/load-extensions.ts': {
    imports: ['domain', 'memory/store.ts', 'models/provider.ts', 'engine/define.ts', 'extensions.ts'],
  },
  'wire/wire-bridge.ts': {
    imports: ['domain', 'config', 'server', 'wire/wire-roots.ts', 'wire/wire-settings.ts'],
    lines: 150,
  },
  'version.ts': { imports: ['../package.json'] },
  'main.ts': { imports: ['version.ts'], lazyImports: ['app.ts', 'cli'] },
  'index.ts': {
    imports: [
      'domain',
      'library',
      'version.ts',
      'extensions.ts',
      'engine/agent/agent.ts',
      'engine/define.ts',
      'engine/fields.ts',
      'models/provider.ts',
      'models/extras/chat-server.ts',
      'memory/store.ts',
      'memory/stores/memory.ts',
    ],
  },
};

const packages: HouseTable['packages'] = {
  zod: [],
  ai: ['models'],
  '@ai-sdk/*': ['models'],
  '@openrouter/*': ['models'],
  'fastest-levenshtein': ['models/routing', 'engine/schema.ts'],
  'gpt-tokenizer': ['files/work'],
  '@redis/client': ['memory/stores'],
  '@modelcontextprotocol/client': ['engine/agent'],
  '@modelcontextprotocol/*': ['server'],
  ws: ['server'],
  execa: ['engine/bridge'],
  jsonrepair: ['engine'],
  ignore: ['files'],
  diff: ['files'],
  'web-tree-sitter': ['files'],
  '@vscode/tree-sitter-wasm': ['files'],
  '@opentelemetry/*': ['telemetry'],
  'js-yaml': ['config', 'models/catalogue.ts'],
  commander: ['cli'],
  'jsonc-parser': ['cli/init'],
};

const outside = ['app.ts', 'cli', 'server'];

const builtins: HouseTable['builtins'] = {
  'node:buffer': [],
  'node:crypto': [],
  'node:events': [],
  'node:path': [],
  'node:stream': [],
  'node:string_decoder': [],
  'node:timers': [],
  'node:url': [],
  'node:util': [],
  'node:zlib': [],
  'node:fs': [
    ...outside,
    'config',
    'engine',
    'files',
    'memory/artifacts.ts',
    'memory/shared-state',
    'memory/stores',
    'telemetry/mask-key.ts',
    'telemetry/sinks',
    'telemetry/log',
    'telemetry/comms',
  ],
  'node:os': [...outside, 'main.ts', 'wire/wire-files.ts', 'wire/wire-agent.ts', 'engine/agent', 'engine/bridge'],
  'node:child_process': [...outside, 'engine/agent', 'engine/bridge', 'files/git/run-git.ts'],
  'node:worker_threads': ['files', 'memory/stores'],
  'node:sqlite': ['memory/stores', 'files/index'],
  'node:dns': ['server', 'engine/agent'],
  'node:net': ['server', 'engine/agent', 'models/extras', 'models/providers'],
  'node:tls': ['server', 'cli/use-proxy.ts'],
  'node:http': ['server', 'cli/use-proxy.ts', 'engine/agent'],
  'node:https': ['server', 'engine/agent'],
  'node:readline': [...outside, 'files', 'telemetry/comms'],
  'node:perf_hooks': outside,
  'node:process': [...outside, 'main.ts'],
  'node:tty': ['cli'],
  'node:module': ['app.ts', 'main.ts', 'wire/load-extensions.ts'],
  'node:async_hooks': ['app.ts', 'server'],
};

export const houseTable: HouseTable = {
  rooms,
  doors,
  packages,
  builtins,
  lines: 350,
  filesPerFolder: 12,
  depth: 3,
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
  nameExceptions: ['models/manager'],
};
