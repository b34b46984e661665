import type { OptionSpec } from '../../core/option.ts';
import { number, oneOf, onOrOff, operatorSetting, setting } from './option-parts.ts';

/** Settings of which tools there are and how they work. */
export const toolOptions = {
  tools: {
    ...operatorSetting('Tools', 'POLYLOGUE_TOOLS'),
    flag: 'tools',
    type: 'list',
    doc: 'Tools to offer, by name. Unset: the tools of the toolsets.',
  },
  writeGeneratedCode: {
    ...operatorSetting('Tools', 'WRITE_GENERATED_CODE'),
    ...onOrOff(false),
    doc: 'Lets `chat` write generated code into `working_directory_absolute_path`; it is then no read-only tool, which hosts ask for or refuse. Off: the code stays in the reply.',
  },
  disabledTools: {
    ...operatorSetting('Tools', 'DISABLED_TOOLS', 'POLYLOGUE_EXCLUDE_TOOLS'),
    flag: 'exclude-tools',
    type: 'list',
    doc: 'Tools to hide, by name. `version` and `listmodels` always stay.',
  },
  toolsets: {
    ...operatorSetting('Tools', 'POLYLOGUE_TOOLSETS'),
    flag: 'toolsets',
    type: 'list',
    default: ['core', 'code', 'files'],
    doc: 'The groups of tools to offer; those of `files` come only with a key of Kimi or GLM. Unset: also `clink`, where the CLI of another vendor is installed.',
  },
  profile: {
    ...operatorSetting('Tools', 'POLYLOGUE_PROFILE'),
    flag: 'profile',
    ...oneOf(['lean', 'standard', 'full'], 'standard'),
    doc: 'How many tools to list. `lean`: a few, with all workflows merged into one tool; `standard`: the toolsets; `full`: everything.',
  },
  readOnly: {
    ...operatorSetting('Tools', 'POLYLOGUE_READ_ONLY'),
    flag: 'read-only',
    ...onOrOff(false),
    doc: 'Hide and refuse tools that write files or change threads. Questions are still stored.',
  },
  expertAtCertain: {
    ...setting('Tools', 'EXPERT_AT_CERTAIN'),
    ...onOrOff(false),
    doc: 'Asks the expert model at the end of a workflow even when the caller says that it is certain.',
  },
  compat: {
    ...setting('Tools', 'POLYLOGUE_COMPAT'),
    ...onOrOff(true),
    doc: 'Keeps the status words of PAL where clearer ones exist, so that its callers go on working.',
  },
} as const satisfies Record<string, OptionSpec>;

/** Which files may be read. */
export const fileOptions = {
  roots: {
    ...operatorSetting('Files', 'POLYLOGUE_ROOTS', 'PROJECT_ROOT'),
    flag: 'roots',
    type: 'paths',
    doc: 'The directories whose files may be read; unset: the project that the client names, else the git repository or the folder with a project file around the working directory.',
  },
  claudeProjectDir: {
    ...operatorSetting('Files', 'CLAUDE_PROJECT_DIR'),
    type: 'path',
    doc: 'The project directory as Claude Code tells it; counts when no roots are set.',
  },
  maxFileBytes: {
    ...setting('Files', 'MAX_FILE_BYTES'),
    ...number({ default: 10_485_760, min: 1_024, max: 1_073_741_824 }),
    doc: 'The most bytes of one file; a larger one is skipped and the reply says so.',
  },
  maxNamedFiles: {
    ...setting('Files', 'MAX_NAMED_FILES'),
    ...number({ default: 50, min: 1, max: 10_000 }),
    doc: 'The most files that one call may name; a directory counts as one.',
  },
  allowSecretFiles: {
    ...operatorSetting('Files', 'ALLOW_SECRET_FILES'),
    ...onOrOff(false),
    doc: 'Reads private keys, `.env` files and credential stores too, which are skipped otherwise.',
  },
  maskSecrets: {
    ...operatorSetting('Files', 'MASK_SECRETS'),
    ...onOrOff(true),
    doc: 'Mask API keys, tokens and passwords before text is sent or stored.',
  },
} as const satisfies Record<string, OptionSpec>;

/** How replies look and how long they are. */
export const replyOptions = {
  locale: {
    ...setting('Replies', 'LOCALE'),
    flag: 'locale',
    type: 'string',
    doc: 'Language of answers, such as `fr-FR`. Unset: the language of the question.',
  },
  replyFormat: {
    ...setting('Replies', 'REPLY_FORMAT'),
    flag: 'reply-format',
    ...oneOf(['json', 'structured', 'markdown'], 'json'),
    doc: 'Reply format. `json`: JSON text; `structured`: also `structuredContent`; `markdown`: Markdown.',
  },
  maxMcpOutputTokens: {
    ...setting('Replies', 'MAX_MCP_OUTPUT_TOKENS'),
    ...number({ default: 25_000, min: 1_000, max: 10_000_000 }),
    doc: 'The most tokens of one reply; what is longer is cut and can be read on page by page.',
  },
  mcpPromptSizeLimit: {
    ...setting('Replies', 'MCP_PROMPT_SIZE_LIMIT'),
    ...number({ min: 1_000, max: 960_000 }),
    doc: 'The most characters of one text field of a call; unset: 2.4 for each token of MAX_MCP_OUTPUT_TOKENS, which is 60,000.',
  },
} as const satisfies Record<string, OptionSpec>;

/** What the AI manager may do by itself, and how much a search of the web brings. */
export const searchOptions = {
  aiManager: {
    ...setting('Models', 'AI_MANAGER'),
    type: 'string',
    choices: ['rules', 'model'],
    doc: 'How to classify ambiguous questions. `rules`: by rules only; `model`: ask a small model first (at most 3 s and 2,000 characters of the question). Unset: `model` if a flash model is configured.',
  },
  webSearch: {
    ...setting('Models', 'WEB_SEARCH'),
    flag: 'web-search',
    ...oneOf(['auto', 'asked', 'off'], 'auto'),
    doc: 'When models may search the web. `auto`: also for questions about current facts; `asked`: only with `use_websearch`; `off`: never. Most vendors bill each search; cost limits include it only where the vendor reports it (xAI, OpenRouter).',
  },
  webSearchMaxResults: {
    ...setting('Models', 'WEB_SEARCH_MAX_RESULTS'),
    ...number({ default: 10, min: 1, max: 50 }),
    doc: 'The most results that one search hands to a model, where its vendor lets one say, and the most citations of a reply.',
  },
  webSearchMaxRounds: {
    ...setting('Models', 'WEB_SEARCH_MAX_ROUNDS'),
    ...number({ default: 3, min: 1, max: 3 }),
    doc: 'The most searches of one call, where the vendor lets one say.',
  },
  webSearchContentSize: {
    ...setting('Models', 'WEB_SEARCH_CONTENT_SIZE'),
    ...oneOf(['low', 'medium', 'high'], 'medium'),
    doc: 'How much of the pages found a model is shown, where its vendor lets one say.',
  },
} as const satisfies Record<string, OptionSpec>;

function cap(env: string, flag: string, whose: string) {
  return {
    ...operatorSetting('Spending', env),
    flag,
    ...number({ min: 0, fractional: true }),
    doc: `Cost limit for ${whose}, in US dollars. A call that could exceed it is refused before any model is asked. Unset: no limit.`,
  };
}

/** What may be spent, and how often a client may call. */
export const spendOptions = {
  maxCostPerRequest: cap('MAX_COST_PER_REQUEST', 'max-cost-per-request', 'one tool call, all its models included'),
  maxCostPerThread: cap('MAX_COST_PER_THREAD', 'max-cost-per-thread', 'all calls on one thread'),
  maxCostPerDay: cap(
    'MAX_COST_PER_DAY',
    'max-cost-per-day',
    'one day (UTC), across all processes that share the store',
  ),
  autoCostLimit: {
    ...operatorSetting('Spending', 'AUTO_COST_LIMIT'),
    flag: 'auto-cost-limit',
    ...number({ default: 2, min: 0, fractional: true }),
    doc: 'US dollars that one call of a tool may cost where no model is named; `auto` chooses, and shortens files and answers, to stay within it.',
  },
  allowUnpricedModels: {
    ...operatorSetting('Spending', 'ALLOW_UNPRICED_MODELS'),
    ...onOrOff(false),
    doc: 'Asks models whose price nobody knows even under a limit on costs, as if they were free. Local ones always are.',
  },
  rateLimits: {
    ...operatorSetting('Spending', 'RATE_LIMITS'),
    flag: 'rate-limits',
    type: 'list',
    doc: 'Calls per minute per client and tool, such as `chat=10,analyze=5`. `on`: chat 10; analyze, codereview, debug 5; thinkdeep, precommit 3. Unset: no limit.',
  },
} as const satisfies Record<string, OptionSpec>;

/** How long threads live, and where. */
export const threadOptions = {
  store: {
    ...operatorSetting('Threads', 'POLYLOGUE_STORE'),
    flag: 'store',
    ...oneOf(['sqlite', 'redis', 'memory'], 'sqlite'),
    doc: 'Where to store threads. `sqlite`: a local file; `redis`: shared by several machines; `memory`: lost on exit.',
  },
  redisUrl: {
    ...operatorSetting('Threads', 'REDIS_URL'),
    type: 'string',
    default: 'redis://127.0.0.1:6379',
    doc: 'The Redis (7 or newer, also a cluster) or Valkey of the store `redis`: `redis://user:password@host:port/database` (or `?db=1`), `rediss://` for TLS. Alone it changes nothing.',
  },
  redisCaFile: {
    ...operatorSetting('Threads', 'REDIS_CA_FILE'),
    type: 'path',
    doc: 'A file of certificates (PEM): the authorities that are trusted for `rediss://`, instead of those of this machine (to which NODE_EXTRA_CA_CERTS adds).',
  },
  redisPrefix: {
    ...operatorSetting('Threads', 'REDIS_PREFIX'),
    type: 'string',
    default: 'polylogue:',
    doc: 'Begins all keys in Redis; servers with the same prefix share their threads.',
  },
  redisTimeoutMs: {
    ...operatorSetting('Threads', 'REDIS_TIMEOUT_MS'),
    ...number({ default: 250, min: 50, max: 60_000 }),
    doc: 'Milliseconds after which a Redis that does not answer counts as gone for now; raise it when it is far away. The first connection may take 2,000.',
  },
  redisDurability: {
    ...operatorSetting('Threads', 'REDIS_DURABILITY'),
    ...oneOf(['server', 'always'], 'server'),
    doc: 'When Redis acknowledges a change. `server`: as the server is configured; with `appendfsync everysec` its death can lose the last two seconds. `always`: once the change is on its disk; sets `appendfsync always` on the server, for all its users, which must have `appendonly yes`.',
  },
  private: {
    ...operatorSetting('Threads', 'POLYLOGUE_PRIVATE'),
    flag: 'private',
    ...onOrOff(false),
    doc: 'Write nothing to disk. Threads stay in memory and end with the process.',
  },
  conversationTimeoutHours: {
    ...setting('Threads', 'CONVERSATION_TIMEOUT_HOURS'),
    ...number({ min: 0.01, max: 87_600, fractional: true }),
    doc: 'Hours that a thread lives after its last use; unset: 720 in the database and in Redis, 3 in memory.',
  },
  maxConversationTurns: {
    ...setting('Threads', 'MAX_CONVERSATION_TURNS'),
    ...number({ default: 1_000, min: 2, max: 100_000 }),
    doc: 'Turns after which the older part of a thread is summed up, though the window of its model has room; a thread is never refused for its length.',
  },
  compactionModel: {
    ...operatorSetting('Threads', 'COMPACTION_MODEL'),
    type: 'string',
    default: 'auto',
    doc: 'Model that summarizes the older part of a long thread. A model name; `auto`: a fast, cheap model of the same provider; `off`: use an extract instead.',
  },
} as const satisfies Record<string, OptionSpec>;
