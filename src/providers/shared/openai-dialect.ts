import type { OptionSpec } from '../../core/option.ts';
import { closestEffort } from '../../models/effort.ts';
import { checkedBaseUrl } from '../../models/extras/endpoint.ts';
import { chatUsage } from '../../models/extras/wire/chat-usage.ts';
import {
  type CallParams,
  type Connection,
  defineProvider,
  type LiveModel,
  type ProviderDefinition,
  type ProviderDocs,
} from '../../models/provider.ts';
import { liveList } from './list-models.ts';
import { answerFetch } from './plain-answer.ts';

/** A server that speaks OpenAI's chat dialect. */
export interface ChatServer {
  /** Id of the provider, for errors. */
  provider: string;
  /** Version path included, without a slash at its end. */
  baseUrl: string;
  /** Sent as a bearer token; absent: none. */
  apiKey?: string;
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>;
  /** Absent: `GET {baseUrl}/models` in OpenAI's form. */
  list?(signal: AbortSignal): Promise<LiveModel[]>;
}

/** The name under which the package looks for options; one of plain letters, whatever the provider is called. */
const vendorName = 'chat';

export async function connectChatServer(server: ChatServer): Promise<Connection> {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const { provider, baseUrl, apiKey } = server;
  const vendor = createOpenAICompatible({
    name: vendorName,
    baseURL: baseUrl,
    apiKey,
    headers: { ...server.headers },
    includeUsage: true,
    fetch: answerFetch,
    convertUsage: chatUsage,
  });
  const headers = { ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }), ...server.headers };
  return {
    languageModel: ({ id }) => vendor.chatModel(id),
    providerOptions: params => ({ [vendorName]: effortOption(params) }),
    // Chat templates often refuse instructions after the conversation.
    tailRole: () => 'user',
    list: server.list ?? (signal => liveList({ provider, baseUrl, headers }, signal)),
  };
}

/** Only for models that are known to take one: servers refuse words that they do not know. */
function effortOption({ model, effort }: CallParams): { reasoningEffort?: string } {
  const sent = effort === undefined ? undefined : closestEffort(effort, model.efforts);
  return sent === undefined ? {} : { reasoningEffort: sent };
}

/** A vendor whose interface is OpenAI's chat dialect and nothing else. */
export interface ChatVendor {
  id: string;
  names: readonly string[];
  title: string;
  /** What its two settings begin with: `ACME` gives ACME_API_KEY and ACME_BASE_URL. */
  env: string;
  /** Its own base address, version path included. */
  baseUrl: string;
  docs: ProviderDocs;
}

interface ChatVendorOptions extends Record<string, OptionSpec> {
  apiKey: OptionSpec;
  baseUrl: OptionSpec;
}

/** The whole provider of such a vendor. */
export function chatVendor(vendor: ChatVendor): ProviderDefinition & { options: ChatVendorOptions } {
  const { id, names, title, env, docs } = vendor;
  const group = 'Providers';
  return defineProvider({
    id,
    names,
    title,
    docs,
    options: {
      apiKey: {
        env: [`${env}_API_KEY`],
        type: 'string',
        doc: `Key of ${title}; with it its models can be asked.`,
        group,
        secret: true,
      },
      baseUrl: {
        env: [`${env}_BASE_URL`],
        type: 'url',
        doc: `Whole base address, version path included, of a server that speaks like ${title}; unset: ${title} itself.`,
        group,
        operatorOnly: true,
      },
    },
    configured: settings => settings.apiKey !== undefined,
    connect: async settings =>
      connectChatServer({
        provider: id,
        baseUrl: checkedBaseUrl(settings.baseUrl ?? vendor.baseUrl, `${env}_BASE_URL`),
        apiKey: settings.apiKey,
      }),
  });
}
