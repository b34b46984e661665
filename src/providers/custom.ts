import { addressSetting, defineProvider, isLocalUrl, isLoopbackUrl, keySetting, setting } from '../models/provider.ts';
import { firstCount } from './shared/list-models.ts';
import { connectOwnServer, fallbackWindow, ownModel } from './shared/self-hosted.ts';

export const custom = defineProvider({
  id: 'custom',
  names: [],
  title: 'A custom endpoint',
  docs: {
    endpoint: 'POST {CUSTOM_API_URL}/chat/completions',
    quirks: [
      'Any server with the OpenAI chat dialect: vLLM, LM Studio, llama.cpp, a gateway. More of them go into `endpoints` of `config.json`.',
      'The window comes from its listing (`max_model_len` of vLLM, `meta.n_ctx` of llama.cpp, `/api/v0/models` of LM Studio), else from CUSTOM_CONTEXT_WINDOW, else 32,768 tokens are assumed and the reply says so.',
      'The model of CUSTOM_MODEL_NAME is chosen before others that it lists. What it does not list may still be asked as `custom:id`.',
    ],
    source: 'https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html',
  },
  options: {
    apiUrl: addressSetting(
      ['CUSTOM_API_URL'],
      'Whole base address of a server with an OpenAI chat interface (vLLM, LM Studio, llama.cpp), such as http://127.0.0.1:8000/v1.',
    ),
    apiKey: keySetting(['CUSTOM_API_KEY'], 'Key of that server, where it wants one.'),
    modelName: setting(
      ['CUSTOM_MODEL_NAME'],
      'Id of the model there, as the server lists it; an id with a colon is kept whole.',
    ),
    runsHere: setting(
      ['CUSTOM_RUNS_HERE'],
      'The models behind a CUSTOM_API_URL of this machine (localhost) run on it, and are no gateway to others: secrets in files are not masked for them.',
      { type: 'boolean', default: false, operatorOnly: true },
    ),
    contextWindow: setting(
      ['CUSTOM_CONTEXT_WINDOW'],
      "Context window in tokens of custom endpoints' models that do not report it; unset: 32,768, and the reply says so.",
      { type: 'number', min: 1024 },
    ),
  },
  openEnded: true,
  configured: settings => settings.apiUrl !== undefined,
  connect: ({ apiUrl, apiKey }) => connectOwnServer('custom', 'CUSTOM_API_URL', { apiUrl, apiKey }),
  models: settings => (settings.modelName === undefined ? [] : [ownModel('custom', settings.modelName)]),
  fallbackWindow: ({ contextWindow }) => fallbackWindow(firstCount(Number(contextWindow))),
  local: settings => settings.apiUrl !== undefined && isLocalUrl(settings.apiUrl),
  runsHere: ({ runsHere, apiUrl }) => runsHere === 'true' && apiUrl !== undefined && isLoopbackUrl(apiUrl),
});
