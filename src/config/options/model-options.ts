import type { OptionSpec } from '../../core/option.ts';
import { list, number, oneOf, onOrOff, operator, path, setting, text, textOr, url } from './option-parts.ts';

const allowList = (vendor: string, ...env: string[]) =>
  operator('Models', list, env, {
    doc: `The only models of ${vendor} that may be asked, by id or alias; unset: all of them.`,
  });

const modelsFile = (vendor: string, ...env: string[]) =>
  operator('Models', path, env, {
    doc: `A JSON or YAML file whose list \`models\` adds models of ${vendor}, or corrects what is known of them.`,
  });

/** Which models may be asked and what is known of them, and how the web is searched. */
export const modelOptions = {
  // Which models may be asked, and which answers when nobody is named.
  defaultModel: setting('Models', textOr('auto'), ['DEFAULT_MODEL', '--default-model'], {
    doc: 'Model to use when a call names none. A name, an alias, `provider:model`, or `auto` to choose by task.',
  }),
  defaultModels: setting('Models', list, ['DEFAULT_MODELS', '--default-models'], {
    doc: 'Models that `prompt` and related tools ask by default. Example: `openai:gpt-5,anthropic:claude-sonnet-4-5`. Unset: DEFAULT_MODEL only.',
  }),
  routePrefer: setting('Models', oneOf(['quality', 'speed', 'cost'], 'quality'), ['ROUTE_PREFER', '--route-prefer'], {
    doc: 'What `auto` optimizes for among capable models.',
  }),
  thinkdeepEffort: setting('Models', textOr('high'), ['DEFAULT_THINKING_MODE_THINKDEEP'], {
    choices: ['minimal', 'low', 'medium', 'high', 'max'],
    doc: 'How hard the expert of `thinkdeep` thinks when the call does not say.',
  }),
  maxThinkingTokens: setting('Models', number(32_768, 0, 1_000_000), ['MAX_THINKING_TOKENS'], {
    doc: 'Maximum thinking tokens, for models that accept a budget.',
  }),
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
  embeddingModel: setting('Models', text, ['EMBEDDING_MODEL'], {
    doc: 'The model that turns texts into vectors for searching by meaning, as `provider:model` of `zhipu`, `openai` or `custom`, such as `zhipu:embedding-3`; unset: none.',
  }),
  deniedModels: operator('Models', list, ['DENIED_MODELS', '--deny-models'], {
    doc: 'Models to never use, by ID or alias. Overrides the allow-lists. A provider such as `openai` means all of its models, also where another server lists them as `openai/…`, such as OpenRouter; `openai:*` and `openai:ID` mean that provider alone. Words that mean nothing are warned of at the start.',
  }),
  localOnly: operator('Models', onOrOff(false), ['LOCAL_ONLY', '--local-only'], {
    doc: 'Use only models on this machine or network; nothing leaves it.',
  }),
  offline: operator('Models', onOrOff(false), ['OFFLINE', 'POLYLOGUE_OFFLINE', '--offline'], {
    doc: 'Use built-in test models: no key, no network. For trying Polylogue and for tests.',
  }),
  allowUnknownModels: setting('Models', onOrOff(false), ['ALLOW_UNKNOWN_MODELS', '--allow-unknown-models'], {
    doc: 'Pass unknown `provider:model` names to the vendor instead of refusing them.',
  }),
  // Where knowledge of models comes from, beside the catalogue and the vendors' own lists.
  openaiModelsFile: modelsFile('OpenAI', 'OPENAI_MODELS_CONFIG_PATH'),
  googleModelsFile: modelsFile('Google', 'GEMINI_MODELS_CONFIG_PATH', 'GOOGLE_MODELS_CONFIG_PATH'),
  anthropicModelsFile: modelsFile('Anthropic', 'ANTHROPIC_MODELS_CONFIG_PATH'),
  xaiModelsFile: modelsFile('xAI', 'XAI_MODELS_CONFIG_PATH'),
  openrouterModelsFile: modelsFile('OpenRouter', 'OPENROUTER_MODELS_CONFIG_PATH'),
  dialModelsFile: modelsFile('DIAL', 'DIAL_MODELS_CONFIG_PATH'),
  customModelsFile: modelsFile('the custom endpoint', 'CUSTOM_MODELS_CONFIG_PATH'),
  azureModelsFile: modelsFile('Azure OpenAI', 'AZURE_MODELS_CONFIG_PATH'),
  modelsFile: operator('Models', path, ['POLYLOGUE_MODELS_FILE', '--models-file'], {
    doc: 'JSON or YAML file that adds or corrects models. Keyed by provider: `{"groq": {"models": […]}}`. Overrides the per-provider files.',
  }),
  modelLists: operator('Models', oneOf(['auto', 'off'], 'auto'), ['MODEL_LISTS'], {
    doc: 'Whether vendors are asked for their lists of models in the background: `auto`: once a day, and what a vendor does not list is not chosen. `off`: for names that are not known alone.',
  }),
  modelsDevUrl: operator('Models', url, ['MODELS_DEV_URL'], {
    default: 'https://models.dev/api.json',
    doc: 'Source of the model data that `polylogue models refresh` downloads. Nothing else contacts it.',
  }),
  // What the AI manager may do by itself, and how much a search of the web brings.
  aiManager: setting('Models', text, ['AI_MANAGER'], {
    choices: ['rules', 'model'],
    doc: 'How to classify ambiguous questions. `rules`: by rules only; `model`: ask a small model first (at most 3 s and 2,000 characters of the question). Unset: `model` if a flash model is configured.',
  }),
  webSearch: setting('Models', oneOf(['auto', 'asked', 'off'], 'auto'), ['WEB_SEARCH', '--web-search'], {
    doc: 'When models may search the web. `auto`: also for questions about current facts; `asked`: only with `use_websearch`; `off`: never. Most vendors bill each search; cost limits include it only where the vendor reports it (xAI, OpenRouter).',
  }),
  webSearchMaxResults: setting('Models', number(10, 1, 50), ['WEB_SEARCH_MAX_RESULTS'], {
    doc: 'The most results that one search hands to a model, where its vendor lets one say, and the most citations of a reply.',
  }),
  webSearchMaxRounds: setting('Models', number(3, 1, 3), ['WEB_SEARCH_MAX_ROUNDS'], {
    doc: 'The most searches of one call, where the vendor lets one say.',
  }),
  webSearchContentSize: setting('Models', oneOf(['low', 'medium', 'high'], 'medium'), ['WEB_SEARCH_CONTENT_SIZE'], {
    doc: 'How much of the pages found a model is shown, where its vendor lets one say.',
  }),
} as const satisfies Record<string, OptionSpec>;
