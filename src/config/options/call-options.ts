import type { OptionSpec } from '../../core/option.ts';
import { between, list, number, oneOf, onOrOff, operator, path, paths, setting, text, textOr } from './option-parts.ts';

/** Threads, tools, agents, replies and files. */
export const callOptions = {
  // How long threads live, and where.
  store: operator('Threads', oneOf(['sqlite', 'redis', 'memory'], 'sqlite'), ['POLYLOGUE_STORE', '--store'], {
    doc: 'Where to store threads. `sqlite`: a local file; `redis`: shared by several machines; `memory`: lost on exit.',
  }),
  redisUrl: operator('Threads', textOr('redis://127.0.0.1:6379'), ['REDIS_URL'], {
    doc: 'The Redis (7 or newer, also a cluster) or Valkey of the store `redis`: `redis://user:password@host:port/database` (or `?db=1`), `rediss://` for TLS. Alone it changes nothing.',
  }),
  redisCaFile: operator('Threads', path, ['REDIS_CA_FILE'], {
    doc: 'A file of certificates (PEM): the authorities that are trusted for `rediss://`, instead of those of this machine (to which NODE_EXTRA_CA_CERTS adds).',
  }),
  redisPrefix: operator('Threads', textOr('polylogue:'), ['REDIS_PREFIX'], {
    doc: 'Begins all keys in Redis; servers with the same prefix share their threads.',
  }),
  redisTimeoutMs: operator('Threads', number(250, 50, 60_000), ['REDIS_TIMEOUT_MS'], {
    doc: 'Milliseconds after which a Redis that does not answer counts as gone for now; raise it when it is far away. The first connection may take 2,000.',
  }),
  redisDurability: operator('Threads', oneOf(['server', 'always'], 'server'), ['REDIS_DURABILITY'], {
    doc: 'When Redis acknowledges a change. `server`: as the server is configured; with `appendfsync everysec` its death can lose the last two seconds. `always`: once the change is on its disk; sets `appendfsync always` on the server, for all its users, which must have `appendonly yes`.',
  }),
  private: operator('Threads', onOrOff(false), ['POLYLOGUE_PRIVATE', '--private'], {
    doc: 'Write nothing to disk. Threads stay in memory and end with the process.',
  }),
  conversationTimeoutHours: setting('Threads', between(0.01, 87_600), ['CONVERSATION_TIMEOUT_HOURS'], {
    fractional: true,
    doc: 'Hours that a thread lives after its last use; unset: 720 in the database and in Redis, 3 in memory.',
  }),
  maxConversationTurns: setting('Threads', number(1_000, 2, 100_000), ['MAX_CONVERSATION_TURNS'], {
    doc: "Turns after which the older part of a thread is summarized, even if its model's context window is not full; a thread is never refused for its length.",
  }),
  compactionModel: operator('Threads', textOr('auto'), ['COMPACTION_MODEL'], {
    doc: 'Model that summarizes the older part of a long thread. A model name; `auto`: a fast, cheap model of the same provider; `off`: use an extract instead.',
  }),
  // Settings of which tools there are and how they work.
  tools: operator('Tools', list, ['POLYLOGUE_TOOLS', '--tools'], {
    doc: 'Tools to offer, by name. Unset: the tools of the toolsets.',
  }),
  writeGeneratedCode: operator('Tools', onOrOff(false), ['WRITE_GENERATED_CODE'], {
    doc: 'Lets `chat` write generated code into `working_directory_absolute_path`; it is then no read-only tool, which hosts ask for or refuse. Off: the code stays in the reply.',
  }),
  disabledTools: operator('Tools', list, ['DISABLED_TOOLS', 'POLYLOGUE_EXCLUDE_TOOLS', '--exclude-tools'], {
    doc: 'Tools to hide, by name. `version` and `listmodels` always stay.',
  }),
  toolsets: operator('Tools', list, ['POLYLOGUE_TOOLSETS', '--toolsets'], {
    default: ['core', 'code', 'files'],
    doc: 'Toolsets to offer. `files` needs a Kimi or GLM key. Unset: also `clink`, where the CLI of another vendor is installed.',
  }),
  profile: operator('Tools', oneOf(['lean', 'standard', 'full'], 'standard'), ['POLYLOGUE_PROFILE', '--profile'], {
    doc: 'How many tools to list. `lean`: a few, with all workflows merged into one tool; `standard`: the toolsets; `full`: everything.',
  }),
  readOnly: operator('Tools', onOrOff(false), ['POLYLOGUE_READ_ONLY', '--read-only'], {
    doc: 'Hide and refuse tools that write files or change threads. Questions are still stored.',
  }),
  expertAtCertain: setting('Tools', onOrOff(false), ['EXPERT_AT_CERTAIN'], {
    doc: 'Asks the expert model at the end of a workflow even when the caller says that it is certain.',
  }),
  compat: setting('Tools', onOrOff(true), ['POLYLOGUE_COMPAT'], {
    doc: 'Keeps the status words of PAL where clearer ones exist, so that its callers go on working.',
  }),
  // Settings of models that work with tools.
  agentApprove: operator('Agent', oneOf(['never', 'reads', 'all'], 'reads'), ['AGENT_APPROVE', '--approve'], {
    doc: 'What an agent may do without being asked about: nothing (`never`), reading within the roots (`reads`), or everything but commands in no known form (`all`). What is left is asked where the host shows forms, and refused elsewhere.',
  }),
  agentCommands: operator('Agent', list, ['AGENT_COMMANDS'], {
    doc: 'The only commands that `all` runs unasked, each by its first words (`*` for one path or name of the project): `npm test,node --test`; unset: the usual ways to test and check a project.',
  }),
  agentCommandSeconds: setting('Agent', number(120, 1, 3_600), ['AGENT_COMMAND_SECONDS'], {
    doc: 'How long one command of an agent may take; it is ended then with all that it started.',
  }),
  agentSandbox: operator('Agent', oneOf(['auto', 'require', 'off'], 'auto'), ['AGENT_SANDBOX'], {
    doc: 'Whether commands of an agent run in a sandbox of the system (bubblewrap, sandbox-exec), where they change the project alone: where there is one (`auto`), always (`require`: else no agent runs), or never (`off`).',
  }),
  agentNetwork: operator('Agent', onOrOff(false), ['AGENT_NETWORK'], {
    doc: 'Lets commands in the sandbox of an agent reach the network, such as a package registry.',
  }),
  agentFetch: operator('Agent', onOrOff(false), ['AGENT_FETCH'], {
    doc: 'Lets agents read pages of the public web; never addresses of this machine or network. Each page is asked about unless AGENT_APPROVE is `all`.',
  }),
  agentTriageModel: operator('Agent', text, ['AGENT_TRIAGE_MODEL'], {
    doc: "A model that looks at what failed in an agent's run and adds a hint; unset: none does.",
  }),
  mcpServers: operator('Agent', path, ['POLYLOGUE_MCP_SERVERS'], {
    doc: 'A file in the form of the hosts (`{"mcpServers": {"name": {"command": "…"}}}`, or with `url`) whose servers\' tools agents may use; each call is asked about, but for those that only read of a server with `"trusted": true`.',
  }),
  // How replies look and how long they are.
  locale: setting('Replies', text, ['LOCALE', '--locale'], {
    doc: 'Language of answers, such as `fr-FR`. Unset: the language of the question.',
  }),
  replyFormat: setting('Replies', textOr('json'), ['REPLY_FORMAT', '--reply-format'], {
    choices: ['json', 'structured', 'markdown'],
    doc: 'Reply format. `json`: JSON text; `structured`: also `structuredContent`; `markdown`: Markdown.',
  }),
  maxMcpOutputTokens: setting('Replies', number(25_000, 1_000, 10_000_000), ['MAX_MCP_OUTPUT_TOKENS'], {
    isShared: true,
    doc: 'Maximum tokens of one reply. A longer reply is cut, and its other pages can be read.',
  }),
  mcpPromptSizeLimit: setting('Replies', between(1_000, 960_000), ['MCP_PROMPT_SIZE_LIMIT'], {
    doc: 'Maximum characters of one text field of a call. Unset: 2.4 for each token of MAX_MCP_OUTPUT_TOKENS, which is 60,000.',
  }),
  // Which files may be read.
  roots: operator('Files', paths, ['POLYLOGUE_ROOTS', 'PROJECT_ROOT', '--roots'], {
    doc: 'The directories whose files may be read; unset: the project that the client names, else the git repository or the directory with a project file around the working directory.',
  }),
  claudeProjectDir: operator('Files', path, ['CLAUDE_PROJECT_DIR'], {
    doc: 'The project directory as Claude Code tells it; counts when no roots are set.',
  }),
  maxFileBytes: setting('Files', number(10_485_760, 1_024, 1_073_741_824), ['MAX_FILE_BYTES'], {
    doc: 'Maximum file size in bytes. A larger file is skipped, and the reply says so.',
  }),
  maxNamedFiles: setting('Files', number(50, 1, 10_000), ['MAX_NAMED_FILES'], {
    doc: 'The most files that one call may name; a directory counts as one.',
  }),
  allowSecretFiles: operator('Files', onOrOff(false), ['ALLOW_SECRET_FILES'], {
    doc: 'Reads private keys, `.env` files and credential stores too, which are skipped otherwise.',
  }),
  maskSecrets: operator('Files', onOrOff(true), ['MASK_SECRETS'], {
    doc: 'Mask API keys, tokens and passwords before text is sent or stored.',
  }),
} as const satisfies Record<string, OptionSpec>;
