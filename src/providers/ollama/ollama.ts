import type { JSONObject } from '@ai-sdk/provider';
import { configError, isAppError } from '../../core/errors.ts';
import {
  type CallParams,
  type Connection,
  checkedBaseUrl,
  closestEffort,
  defineProvider,
  isLocalUrl,
  isLoopbackUrl,
  keySetting,
  type ProviderSettings,
  setting,
} from '../../models/provider.ts';
import { createOllamaList, isCloudName } from './list-models.ts';
import { ollamaModel } from './model.ts';

const ownPort = 11_434;

/**
 * The base of an Ollama server's interface from what OLLAMA_HOST may hold: a host, `host:port`, `:port` or a whole address.
 * The address that a server listens on everywhere stands for this machine.
 */
export function ollamaAddress(value: string): string {
  const text = value.trim().replace(/^["']+|["']+$/g, '');
  const url = new URL(checkedBaseUrl(/^[a-z]+:\/\//i.test(text) ? text : withPort(text), 'OLLAMA_HOST'));
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  const path = url.pathname.replace(/\/+$/, '').replace(/\/(api|v1)$/, '');
  return `${url.origin}${path}/api`;
}

function withPort(text: string): string {
  const [, authority = '', path = ''] = /^([^/]*)(.*)$/s.exec(text) ?? [];
  const bare = (authority.match(/:/g)?.length ?? 0) > 1 && !authority.startsWith('[');
  const host = bare ? `[${authority}]` : authority.replace(/^(?=:)/, '127.0.0.1');
  return `http://${/:\d+$/.test(host) && !bare ? host : `${host}:${ownPort}`}${path}`;
}

const defaultWindow = 32_768;

export const ollama = defineProvider({
  id: 'ollama',
  names: ['l'],
  title: 'Ollama',
  docs: {
    endpoint: 'POST {OLLAMA_HOST}/api/chat',
    quirks: [
      'Only what is pulled there is offered; the list is asked for at most once a minute.',
      'A model is loaded with the window that the prompt was made for (`num_ctx`), OLLAMA_NUM_CTX at the most.',
      'Models that the server forwards to ollama.com are left out unless OLLAMA_CLOUD_MODELS is set; it then no longer counts as local.',
    ],
    source: 'https://docs.ollama.com/api/chat',
  },
  options: {
    host: setting(
      ['OLLAMA_HOST', 'OLLAMA_BASE_URL'],
      'Address of an Ollama server, such as 127.0.0.1:11434; with it the models that are pulled there can be asked.',
      { operatorOnly: true },
    ),
    apiKey: keySetting(['OLLAMA_API_KEY'], 'Key of that server, where it wants one, as ollama.com does.'),
    numCtx: setting(
      ['OLLAMA_NUM_CTX'],
      'The widest context window in tokens that Ollama models are loaded with; wider ones need more memory.',
      { type: 'number', default: defaultWindow, min: 2048, max: 10_000_000 },
    ),
    cloudModels: setting(
      ['OLLAMA_CLOUD_MODELS'],
      'Also asks models that the Ollama server forwards to ollama.com; it then no longer counts as local.',
      { type: 'boolean', default: false, operatorOnly: true },
    ),
  },
  configured: settings => settings.host !== undefined,
  connect,
  listDecides: true,
  local: settings => !withCloud(settings) && settings.host !== undefined && leads(settings.host, isLocalUrl),
  runsHere: settings => !withCloud(settings) && settings.host !== undefined && leads(settings.host, isLoopbackUrl),
});

async function connect(settings: ProviderSettings): Promise<Connection> {
  const { apiKey, host = '' } = settings;
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const server = { baseUrl: ollamaAddress(host), headers };
  const cloud = withCloud(settings);
  return {
    languageModel({ id }) {
      // By its name alone it would be asked, and what was meant to stay would leave.
      if (!cloud && isCloudName(id))
        throw configError(`${id} does not run on the Ollama server: it is forwarded to ollama.com.`, {
          provider: 'ollama',
          model: id,
          next: 'Name a model that is pulled there, or set OLLAMA_CLOUD_MODELS to true.',
        });
      return ollamaModel(server, id);
    },
    // The window that the prompt was made for: a smaller one would cut it, a larger one takes memory for nothing.
    providerOptions: params => ({ ollama: { num_ctx: params.model.window, ...thinkOption(params) } }),
    tailRole: () => 'user',
    echoesThoughts: true,
    list: createOllamaList({ server, cap: capOf(settings), cloud }),
  };
}

const levels = ['low', 'medium', 'high', 'max'] as const;

/** A level where the model knows several, else on or off; nothing for models that don't think or whose ways are unknown. */
function thinkOption({ model, effort }: CallParams): JSONObject {
  const sent = closestEffort(effort, model.efforts);
  if (sent === undefined) return {};
  if (sent === 'none') return { think: false };
  const several = model.efforts.filter(word => word !== 'none').length > 1;
  return { think: several ? (closestEffort(sent, levels) ?? true) : true };
}

function capOf({ numCtx }: ProviderSettings): number {
  const tokens = Number(numCtx ?? defaultWindow);
  return Number.isInteger(tokens) && tokens > 0 ? tokens : defaultWindow;
}

const withCloud = ({ cloudModels }: ProviderSettings): boolean => cloudModels === 'true';

function leads(host: string, where: (url: string) => boolean): boolean {
  try {
    return where(ollamaAddress(host));
  } catch (error) {
    // What is wrong with the address is said when it is first used.
    if (isAppError(error)) return false;
    throw error;
  }
}
