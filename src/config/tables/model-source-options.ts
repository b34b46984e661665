import type { OptionSpec } from '../../core/option.ts';

function modelsFile(vendor: string, env: readonly string[]) {
  return {
    env,
    type: 'path',
    doc: `A JSON or YAML file whose list \`models\` adds models of ${vendor}, or corrects what is known of them.`,
    group: 'Models',
    operatorOnly: true,
  } as const;
}

/** Where knowledge of models comes from, beside the catalogue and the vendors' own lists. */
export const modelSourceOptions = {
  openaiModelsFile: modelsFile('OpenAI', ['OPENAI_MODELS_CONFIG_PATH']),
  googleModelsFile: modelsFile('Google', ['GEMINI_MODELS_CONFIG_PATH', 'GOOGLE_MODELS_CONFIG_PATH']),
  anthropicModelsFile: modelsFile('Anthropic', ['ANTHROPIC_MODELS_CONFIG_PATH']),
  xaiModelsFile: modelsFile('xAI', ['XAI_MODELS_CONFIG_PATH']),
  openrouterModelsFile: modelsFile('OpenRouter', ['OPENROUTER_MODELS_CONFIG_PATH']),
  dialModelsFile: modelsFile('DIAL', ['DIAL_MODELS_CONFIG_PATH']),
  customModelsFile: modelsFile('the custom endpoint', ['CUSTOM_MODELS_CONFIG_PATH']),
  azureModelsFile: modelsFile('Azure OpenAI', ['AZURE_MODELS_CONFIG_PATH']),
  modelsFile: {
    env: ['POLYLOGUE_MODELS_FILE'],
    flag: 'models-file',
    type: 'path',
    doc: 'A JSON or YAML file with such lists for any providers, each under its id: `{"groq": {"models": […]}}`; it wins over the others.',
    group: 'Models',
    operatorOnly: true,
  },
  modelsDevUrl: {
    env: ['MODELS_DEV_URL'],
    type: 'url',
    default: 'https://models.dev/api.json',
    doc: 'Where `polylogue models refresh` gets facts about models from; nothing else asks it.',
    group: 'Models',
    operatorOnly: true,
  },
} as const satisfies Record<string, OptionSpec>;
