import type { OptionSpec } from '../../core/option.ts';
import { list, number, oneOf, onOrOff, operator, path, setting, text, textOr, url } from './option-parts.ts';

const allowList = (vendor: string, ...env: [string, ...string[]]) =>
  ({
    ...operator('Models', list, ...env),
    doc: `The only models of ${vendor} that may be asked, by id or alias; unset: all of them.`,
  }) as const;

/** Which models may be asked, and which answers when nobody is named. */
export const modelOptions = {
  defaultModel: {
    ...setting('Models', textOr('auto'), 'DEFAULT_MODEL', '--default-model'),
    doc: 'Model to use when a call names none. A name, an alias, `provider:model`, or `auto` to choose by task.',
  },
  defaultModels: {
    ...setting('Models', list, 'DEFAULT_MODELS', '--default-models'),
    doc: 'Models that `prompt` and related tools ask by default. Example: `openai:gpt-5,anthropic:claude-sonnet-4-5`. Unset: DEFAULT_MODEL only.',
  },
  routePrefer: {
    ...setting('Models', oneOf(['quality', 'speed', 'cost'], 'quality'), 'ROUTE_PREFER', '--route-prefer'),
    doc: 'What `auto` optimizes for among capable models.',
  },
  thinkdeepEffort: {
    ...setting('Models', oneOf(['minimal', 'low', 'medium', 'high', 'max'], 'high'), 'DEFAULT_THINKING_MODE_THINKDEEP'),
    doc: 'How hard the expert of `thinkdeep` thinks when the call does not say.',
  },
  maxThinkingTokens: {
    ...setting('Models', number(32_768, 0, 1_000_000), 'MAX_THINKING_TOKENS'),
    doc: 'Maximum thinking tokens, for models that accept a budget.',
  },
  openaiAllowedModels: allowList('OpenAI', 'OPENAI_ALLOWED_MODELS'),
  googleAllowedModels: allowList('Google', 'GOOGLE_ALLOWED_MODELS', 'GEMINI_ALLOWED_MODELS'),
  anthropicAllowedModels: allowList('Anthropic', 'ANTHROPIC_ALLOWED_MODELS'),
  xaiAllowedModels: allowList('xAI', 'XAI_ALLOWED_MODELS'),
  openrouterAllowedModels: allowList('OpenRouter', 'OPENROUTER_ALLOWED_MODELS'),
  dialAllowedModels: allowList('DIAL', 'DIAL_ALLOWED_MODELS'),
  customAllowedModels: allowList('the custom endpoint', 'CUSTOM_ALLOWED_MODELS'),
  azureAllowedModels: allowList('Azure OpenAI', 'AZURE_ALLOWED_MODELS', 'AZURE_OPENAI_ALLOWED_MODELS'),
  ollamaAllowedModels: allowList('Ollama', 'OLLAMA_ALLOWED_MODELS'),
  groqAllowedModels: allowList('Groq', 'GROQ_ALLOWED_MODELS'),
  deepseekAllowedModels: allowList('DeepSeek', 'DEEPSEEK_ALLOWED_MODELS'),
  moonshotAllowedModels: allowList('Moonshot', 'MOONSHOT_ALLOWED_MODELS', 'KIMI_ALLOWED_MODELS'),
  zhipuAllowedModels: allowList('Zhipu', 'ZHIPU_ALLOWED_MODELS', 'GLM_ALLOWED_MODELS', 'ZAI_ALLOWED_MODELS'),
  minimaxAllowedModels: allowList('MiniMax', 'MINIMAX_ALLOWED_MODELS'),
  embeddingModel: {
    ...setting('Models', text, 'EMBEDDING_MODEL'),
    doc: 'The model that turns texts into vectors for searching by meaning, as `provider:model` of `zhipu`, `openai` or `custom`, such as `zhipu:embedding-3`; unset: none.',
  },
  deniedModels: {
    ...operator('Models', list, 'DENIED_MODELS', '--deny-models'),
    doc: 'Models to never use, by ID or alias. Overrides the allow-lists.',
  },
  localOnly: {
    ...operator('Models', onOrOff(false), 'LOCAL_ONLY', '--local-only'),
    doc: 'Use only models on this machine or network; nothing leaves it.',
  },
  offline: {
    ...operator('Models', onOrOff(false), 'OFFLINE', 'POLYLOGUE_OFFLINE', '--offline'),
    doc: 'Use built-in test models: no key, no network. For trying Polylogue and for tests.',
  },
  allowUnknownModels: {
    ...setting('Models', onOrOff(false), 'ALLOW_UNKNOWN_MODELS', '--allow-unknown-models'),
    doc: 'Pass unknown `provider:model` names to the vendor instead of refusing them.',
  },
} as const satisfies Record<string, OptionSpec>;

/** Settings of models that work with tools. */
export const agentOptions = {
  agentApprove: {
    ...operator('Agent', oneOf(['never', 'reads', 'all'], 'reads'), 'AGENT_APPROVE', '--approve'),
    doc: 'What an agent may do without being asked about: nothing (`never`), reading within the roots (`reads`), or everything but commands in no known form (`all`). What is left is asked where the host shows forms, and refused elsewhere.',
  },
  agentCommands: {
    ...operator('Agent', list, 'AGENT_COMMANDS'),
    doc: 'The only commands that `all` runs unasked, each by its first words (`*` for one path or name of the project): `npm test,node --test`; unset: the usual ways to test and check a project.',
  },
  agentCommandSeconds: {
    ...setting('Agent', number(120, 1, 3_600), 'AGENT_COMMAND_SECONDS'),
    doc: 'How long one command of an agent may take; it is ended then with all that it started.',
  },
  agentSandbox: {
    ...operator('Agent', oneOf(['auto', 'require', 'off'], 'auto'), 'AGENT_SANDBOX'),
    doc: 'Whether commands of an agent run in a sandbox of the system (bubblewrap, sandbox-exec), where they change the project alone: where there is one (`auto`), always (`require`: else no agent runs), or never (`off`).',
  },
  agentNetwork: {
    ...operator('Agent', onOrOff(false), 'AGENT_NETWORK'),
    doc: 'Lets commands in the sandbox of an agent reach the network, such as a package registry.',
  },
  agentFetch: {
    ...operator('Agent', onOrOff(false), 'AGENT_FETCH'),
    doc: 'Lets agents read pages of the public web; never addresses of this machine or network. Each page is asked about unless AGENT_APPROVE is `all`.',
  },
  agentTriageModel: {
    ...operator('Agent', text, 'AGENT_TRIAGE_MODEL'),
    doc: "A model that looks at what failed in an agent's run and adds a hint; unset: none does.",
  },
  mcpServers: {
    ...operator('Agent', path, 'POLYLOGUE_MCP_SERVERS'),
    doc: 'A file in the form of the hosts (`{"mcpServers": {"name": {"command": "…"}}}`, or with `url`) whose servers\' tools agents may use; each call is asked about, but for those that only read of a server with `"trusted": true`.',
  },
} as const satisfies Record<string, OptionSpec>;

/** Other vendors' agents with a command line. */
export const cliOptions = {
  cliClients: {
    ...operator('Programs', path, 'CLI_CLIENTS_CONFIG_PATH', 'POLYLOGUE_CLIS'),
    doc: 'A JSON file, or a directory of them, each about one CLI for `clink` and `cli:name`, in the format of docs/clis.md; read after those in `clis` of POLYLOGUE_HOME.',
  },
  cliAllowWrites: {
    ...operator('Programs', onOrOff(false), 'CLI_ALLOW_WRITES'),
    doc: 'Lets CLIs change files where a call of `clink` says `allow_writes`; otherwise all of them are started so that they only read.',
  },
  cliTimeoutSeconds: {
    ...setting('Programs', number(1_800, 1, 86_400), 'CLI_TIMEOUT_SECONDS'),
    doc: 'Seconds that a CLI may work on one request; then it is ended with all that it started.',
  },
} as const satisfies Record<string, OptionSpec>;

const modelsFile = (vendor: string, ...env: [string, ...string[]]) =>
  ({
    ...operator('Models', path, ...env),
    doc: `A JSON or YAML file whose list \`models\` adds models of ${vendor}, or corrects what is known of them.`,
  }) as const;

/** Where knowledge of models comes from, beside the catalogue and the vendors' own lists. */
export const modelSourceOptions = {
  openaiModelsFile: modelsFile('OpenAI', 'OPENAI_MODELS_CONFIG_PATH'),
  googleModelsFile: modelsFile('Google', 'GEMINI_MODELS_CONFIG_PATH', 'GOOGLE_MODELS_CONFIG_PATH'),
  anthropicModelsFile: modelsFile('Anthropic', 'ANTHROPIC_MODELS_CONFIG_PATH'),
  xaiModelsFile: modelsFile('xAI', 'XAI_MODELS_CONFIG_PATH'),
  openrouterModelsFile: modelsFile('OpenRouter', 'OPENROUTER_MODELS_CONFIG_PATH'),
  dialModelsFile: modelsFile('DIAL', 'DIAL_MODELS_CONFIG_PATH'),
  customModelsFile: modelsFile('the custom endpoint', 'CUSTOM_MODELS_CONFIG_PATH'),
  azureModelsFile: modelsFile('Azure OpenAI', 'AZURE_MODELS_CONFIG_PATH'),
  modelsFile: {
    ...operator('Models', path, 'POLYLOGUE_MODELS_FILE', '--models-file'),
    doc: 'JSON or YAML file that adds or corrects models. Keyed by provider: `{"groq": {"models": […]}}`. Overrides the per-provider files.',
  },
  modelLists: {
    ...operator('Models', text, 'MODEL_LISTS'),
    choices: ['auto', 'off'],
    default: 'auto',
    doc: 'Whether vendors are asked for their lists of models in the background: `auto`: once a day, and what a vendor does not list is not chosen. `off`: for names that are not known alone.',
  },
  modelsDevUrl: {
    ...operator('Models', url, 'MODELS_DEV_URL'),
    default: 'https://models.dev/api.json',
    doc: 'Source of the model data that `polylogue models refresh` downloads. Nothing else contacts it.',
  },
} as const satisfies Record<string, OptionSpec>;
