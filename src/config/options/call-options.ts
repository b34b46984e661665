import type { OptionSpec } from '../../core/option.ts';
import { between, list, number, oneOf, onOrOff, operator, path, paths, setting, text, textOr } from './option-parts.ts';

/** Settings of which tools there are and how they work. */
export const toolOptions = {
  tools: {
    ...operator('Tools', list, 'POLYLOGUE_TOOLS', '--tools'),
    doc: 'Tools to offer, by name. Unset: the tools of the toolsets.',
  },
  writeGeneratedCode: {
    ...operator('Tools', onOrOff(false), 'WRITE_GENERATED_CODE'),
    doc: 'Lets `chat` write generated code into `working_directory_absolute_path`; it is then no read-only tool, which hosts ask for or refuse. Off: the code stays in the reply.',
  },
  disabledTools: {
    ...operator('Tools', list, 'DISABLED_TOOLS', 'POLYLOGUE_EXCLUDE_TOOLS', '--exclude-tools'),
    doc: 'Tools to hide, by name. `version` and `listmodels` always stay.',
  },
  toolsets: {
    ...operator('Tools', list, 'POLYLOGUE_TOOLSETS', '--toolsets'),
    default: ['core', 'code', 'files'],
    doc: 'Toolsets to offer. `files` needs a Kimi or GLM key. Unset: also `clink`, where the CLI of another vendor is installed.',
  },
  profile: {
    ...operator('Tools', oneOf(['lean', 'standard', 'full'], 'standard'), 'POLYLOGUE_PROFILE', '--profile'),
    doc: 'How many tools to list. `lean`: a few, with all workflows merged into one tool; `standard`: the toolsets; `full`: everything.',
  },
  readOnly: {
    ...operator('Tools', onOrOff(false), 'POLYLOGUE_READ_ONLY', '--read-only'),
    doc: 'Hide and refuse tools that write files or change threads. Questions are still stored.',
  },
  expertAtCertain: {
    ...setting('Tools', onOrOff(false), 'EXPERT_AT_CERTAIN'),
    doc: 'Asks the expert model at the end of a workflow even when the caller says that it is certain.',
  },
  compat: {
    ...setting('Tools', onOrOff(true), 'POLYLOGUE_COMPAT'),
    doc: 'Keeps the status words of PAL where clearer ones exist, so that its callers go on working.',
  },
} as const satisfies Record<string, OptionSpec>;

/** Which files may be read. */
export const fileOptions = {
  roots: {
    ...operator('Files', paths, 'POLYLOGUE_ROOTS', 'PROJECT_ROOT', '--roots'),
    doc: 'The directories whose files may be read; unset: the project that the client names, else the git repository or the directory with a project file around the working directory.',
  },
  claudeProjectDir: {
    ...operator('Files', path, 'CLAUDE_PROJECT_DIR'),
    doc: 'The project directory as Claude Code tells it; counts when no roots are set.',
  },
  maxFileBytes: {
    ...setting('Files', number(10_485_760, 1_024, 1_073_741_824), 'MAX_FILE_BYTES'),
    doc: 'Maximum file size in bytes. A larger file is skipped, and the reply says so.',
  },
  maxNamedFiles: {
    ...setting('Files', number(50, 1, 10_000), 'MAX_NAMED_FILES'),
    doc: 'The most files that one call may name; a directory counts as one.',
  },
  allowSecretFiles: {
    ...operator('Files', onOrOff(false), 'ALLOW_SECRET_FILES'),
    doc: 'Reads private keys, `.env` files and credential stores too, which are skipped otherwise.',
  },
  maskSecrets: {
    ...operator('Files', onOrOff(true), 'MASK_SECRETS'),
    doc: 'Mask API keys, tokens and passwords before text is sent or stored.',
  },
} as const satisfies Record<string, OptionSpec>;

/** How replies look and how long they are. */
export const replyOptions = {
  locale: {
    ...setting('Replies', text, 'LOCALE', '--locale'),
    doc: 'Language of answers, such as `fr-FR`. Unset: the language of the question.',
  },
  replyFormat: {
    ...setting('Replies', oneOf(['json', 'structured', 'markdown'], 'json'), 'REPLY_FORMAT', '--reply-format'),
    doc: 'Reply format. `json`: JSON text; `structured`: also `structuredContent`; `markdown`: Markdown.',
  },
  maxMcpOutputTokens: {
    ...setting('Replies', number(25_000, 1_000, 10_000_000), 'MAX_MCP_OUTPUT_TOKENS'),
    doc: 'Maximum tokens of one reply. A longer reply is cut, and its other pages can be read.',
  },
  mcpPromptSizeLimit: {
    ...setting('Replies', between(1_000, 960_000), 'MCP_PROMPT_SIZE_LIMIT'),
    doc: 'Maximum characters of one text field of a call. Unset: 2.4 for each token of MAX_MCP_OUTPUT_TOKENS, which is 60,000.',
  },
} as const satisfies Record<string, OptionSpec>;

/** What the AI manager may do by itself, and how much a search of the web brings. */
export const searchOptions = {
  aiManager: {
    ...setting('Models', text, 'AI_MANAGER'),
    choices: ['rules', 'model'],
    doc: 'How to classify ambiguous questions. `rules`: by rules only; `model`: ask a small model first (at most 3 s and 2,000 characters of the question). Unset: `model` if a flash model is configured.',
  },
  webSearch: {
    ...setting('Models', oneOf(['auto', 'asked', 'off'], 'auto'), 'WEB_SEARCH', '--web-search'),
    doc: 'When models may search the web. `auto`: also for questions about current facts; `asked`: only with `use_websearch`; `off`: never. Most vendors bill each search; cost limits include it only where the vendor reports it (xAI, OpenRouter).',
  },
  webSearchMaxResults: {
    ...setting('Models', number(10, 1, 50), 'WEB_SEARCH_MAX_RESULTS'),
    doc: 'The most results that one search hands to a model, where its vendor lets one say, and the most citations of a reply.',
  },
  webSearchMaxRounds: {
    ...setting('Models', number(3, 1, 3), 'WEB_SEARCH_MAX_ROUNDS'),
    doc: 'The most searches of one call, where the vendor lets one say.',
  },
  webSearchContentSize: {
    ...setting('Models', oneOf(['low', 'medium', 'high'], 'medium'), 'WEB_SEARCH_CONTENT_SIZE'),
    doc: 'How much of the pages found a model is shown, where its vendor lets one say.',
  },
} as const satisfies Record<string, OptionSpec>;

const dollars = { type: 'number', min: 0, fractional: true } as const;

const cap = (env: string, flag: string, whose: string) => ({
  ...operator('Spending', dollars, env, flag),
  doc: `Cost limit for ${whose}, in US dollars. A call that could exceed it is refused before any model is asked. Unset: no limit.`,
});

/** What may be spent, and how often a client may call. */
export const spendOptions = {
  maxCostPerRequest: cap('MAX_COST_PER_REQUEST', '--max-cost-per-request', 'one tool call, all its models included'),
  maxCostPerThread: cap('MAX_COST_PER_THREAD', '--max-cost-per-thread', 'all calls on one thread'),
  maxCostPerDay: cap(
    'MAX_COST_PER_DAY',
    '--max-cost-per-day',
    'one day (UTC), across all processes that share the store',
  ),
  autoCostLimit: {
    ...operator('Spending', { ...dollars, default: 2 }, 'AUTO_COST_LIMIT', '--auto-cost-limit'),
    doc: 'US dollars that one call of a tool may cost where no model is named; `auto` chooses, and shortens files and answers, to stay within it.',
  },
  allowUnpricedModels: {
    ...operator('Spending', onOrOff(false), 'ALLOW_UNPRICED_MODELS'),
    doc: 'Asks models whose price nobody knows even under a limit on costs, as if they were free. Local ones always are.',
  },
  rateLimits: {
    ...operator('Spending', list, 'RATE_LIMITS', '--rate-limits'),
    doc: 'Calls per minute per client and tool, such as `chat=10,analyze=5`. `on`: chat 10; analyze, codereview, debug 5; thinkdeep, precommit 3. Unset: no limit.',
  },
} as const satisfies Record<string, OptionSpec>;

/** How long threads live, and where. */
export const threadOptions = {
  store: {
    ...operator('Threads', oneOf(['sqlite', 'redis', 'memory'], 'sqlite'), 'POLYLOGUE_STORE', '--store'),
    doc: 'Where to store threads. `sqlite`: a local file; `redis`: shared by several machines; `memory`: lost on exit.',
  },
  redisUrl: {
    ...operator('Threads', textOr('redis://127.0.0.1:6379'), 'REDIS_URL'),
    doc: 'The Redis (7 or newer, also a cluster) or Valkey of the store `redis`: `redis://user:password@host:port/database` (or `?db=1`), `rediss://` for TLS. Alone it changes nothing.',
  },
  redisCaFile: {
    ...operator('Threads', path, 'REDIS_CA_FILE'),
    doc: 'A file of certificates (PEM): the authorities that are trusted for `rediss://`, instead of those of this machine (to which NODE_EXTRA_CA_CERTS adds).',
  },
  redisPrefix: {
    ...operator('Threads', textOr('polylogue:'), 'REDIS_PREFIX'),
    doc: 'Begins all keys in Redis; servers with the same prefix share their threads.',
  },
  redisTimeoutMs: {
    ...operator('Threads', number(250, 50, 60_000), 'REDIS_TIMEOUT_MS'),
    doc: 'Milliseconds after which a Redis that does not answer counts as gone for now; raise it when it is far away. The first connection may take 2,000.',
  },
  redisDurability: {
    ...operator('Threads', oneOf(['server', 'always'], 'server'), 'REDIS_DURABILITY'),
    doc: 'When Redis acknowledges a change. `server`: as the server is configured; with `appendfsync everysec` its death can lose the last two seconds. `always`: once the change is on its disk; sets `appendfsync always` on the server, for all its users, which must have `appendonly yes`.',
  },
  private: {
    ...operator('Threads', onOrOff(false), 'POLYLOGUE_PRIVATE', '--private'),
    doc: 'Write nothing to disk. Threads stay in memory and end with the process.',
  },
  conversationTimeoutHours: {
    ...setting('Threads', { ...between(0.01, 87_600), fractional: true }, 'CONVERSATION_TIMEOUT_HOURS'),
    doc: 'Hours that a thread lives after its last use; unset: 720 in the database and in Redis, 3 in memory.',
  },
  maxConversationTurns: {
    ...setting('Threads', number(1_000, 2, 100_000), 'MAX_CONVERSATION_TURNS'),
    doc: "Turns after which the older part of a thread is summarized, even if its model's context window is not full; a thread is never refused for its length.",
  },
  compactionModel: {
    ...operator('Threads', textOr('auto'), 'COMPACTION_MODEL'),
    doc: 'Model that summarizes the older part of a long thread. A model name; `auto`: a fast, cheap model of the same provider; `off`: use an extract instead.',
  },
} as const satisfies Record<string, OptionSpec>;
