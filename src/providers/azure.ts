import type { ModelInfo } from '../core/model.ts';
import { azureAddress } from '../models/extras/azure/azure-address.ts';
import { deploymentModels } from '../models/extras/azure/deployment-models.ts';
import { chatOptions, responsesOptions } from '../models/extras/wire/open-ai-options.ts';
import type { Fetch } from '../models/extras/wire/vendor-fetch.ts';
import { type Connection, defineProvider, type ProviderSettings } from '../models/provider.ts';
import { answerFetch } from './shared/plain-answer.ts';

const group = 'Providers';

export const azure = defineProvider({
  id: 'azure',
  names: [],
  title: 'Azure OpenAI',
  docs: {
    endpoint:
      'POST {AZURE_OPENAI_ENDPOINT}/openai/v1/responses, or /openai/deployments/{name}/chat/completions?api-version=… for dated versions',
    quirks: [
      'It serves the deployments that the operator names (AZURE_OPENAI_DEPLOYMENTS); its interface lists the models of a region, not them.',
      "What a deployment can do, the catalogue's row of OpenAI's model tells; others that think are named in AZURE_OPENAI_REASONING_DEPLOYMENTS.",
      'The key goes into the header `api-key`.',
    ],
    source: 'https://learn.microsoft.com/azure/ai-foundry/openai/reference',
  },
  options: {
    apiKey: {
      env: ['AZURE_OPENAI_API_KEY'],
      type: 'string',
      doc: 'Key of an Azure OpenAI resource; with it and the endpoint its deployments can be asked.',
      group,
      secret: true,
    },
    endpoint: {
      env: ['AZURE_OPENAI_ENDPOINT'],
      type: 'url',
      doc: 'Address of the Azure OpenAI resource, such as https://NAME.openai.azure.com.',
      group,
      operatorOnly: true,
    },
    apiVersion: {
      env: ['AZURE_OPENAI_API_VERSION'],
      type: 'string',
      doc: 'Version of the interface: unset or `v1` for the undated one, `preview`, or a date such as 2024-10-21 for deployment addresses.',
      group,
    },
    deployments: {
      env: ['AZURE_OPENAI_DEPLOYMENTS'],
      type: 'string',
      doc: 'Deployments of the Azure OpenAI resource by comma, each `name=model` with the model as OpenAI calls it, or the name alone where they are the same: `prod=gpt-5.1,gpt-5-mini`.',
      group,
    },
    reasoningDeployments: {
      env: ['AZURE_OPENAI_REASONING_DEPLOYMENTS'],
      type: 'string',
      doc: 'Names by comma of deployments on Azure that think and take an effort, where the model does not tell it.',
      group,
    },
    apiStyle: {
      env: ['AZURE_OPENAI_API_STYLE'],
      type: 'string',
      choices: ['responses', 'chat'],
      doc: 'Which interface Azure OpenAI is asked through; unset: `responses`, but `chat` with versions from before there was one (2025-03-01).',
      group,
    },
  },
  unlisted: true,
  configured: settings => settings.apiKey !== undefined && settings.endpoint !== undefined,
  connect,
  models: (settings: ProviderSettings, known: readonly ModelInfo[]): ModelInfo[] =>
    deploymentModels(settings.deployments, settings.reasoningDeployments, known),
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { createOpenAI } = await import('@ai-sdk/openai');
  const { apiKey = '', endpoint = '', apiVersion, apiStyle } = settings;
  const address = azureAddress({ endpoint, apiVersion, apiStyle });
  const fetch = azureFetch(apiKey, address.query);
  const vendorFor = (deployment: string) => createOpenAI({ apiKey, baseURL: address.baseUrl(deployment), fetch });
  return {
    languageModel: ({ id }) => (address.chat ? vendorFor(id).chat(id) : vendorFor(id).responses(id)),
    providerOptions: params => ({ openai: address.chat ? chatOptions(params) : responsesOptions(params) }),
    tailRole: () => 'system',
    // No list: the interface names the models of the region, never the deployments.
  };
}

/** Azure has its key in a header of its own, and the version behind the address. */
function azureFetch(apiKey: string, query: Readonly<Record<string, string>>): Fetch {
  return (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const headers = new Headers(init?.headers);
    headers.delete('authorization');
    headers.set('api-key', apiKey);
    return answerFetch(url, { ...init, headers });
  };
}
