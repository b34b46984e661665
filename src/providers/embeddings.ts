import { configError, throwIfAborted } from '../core/errors.ts';
import { isRecord, type JsonObject, recordsIn } from '../core/json.ts';
import { estimateTokens } from '../core/tokens.ts';
import { mayBeBilled } from '../models/budget.ts';
import { checkedBaseUrl, type ProviderSettings, type VendorEndpoint } from '../models/provider.ts';
import { badUpstream } from '../models/resilience/errors.ts';
import type { VendorEmbedder } from '../models/vendor-services.ts';
import { openai } from './openai.ts';
import { vendorJson } from './shared/http.ts';
import { zhipu } from './zhipu/zhipu.ts';

/** What vendors take in one request at the least. */
const maxTexts = 64;

const timeoutMs = 60_000;

/** Any server with OpenAI's `POST /embeddings`. */
const createEmbedder = (endpoint: VendorEndpoint, model: string): VendorEmbedder => ({
  model: `${endpoint.provider}:${model}`,
  async embed(texts, signal, report) {
    const vectors: Float32Array[] = [];
    for (let at = 0; at < texts.length; at += maxTexts) {
      const input = texts.slice(at, at + maxTexts);
      // Vendors refuse an empty text; a space stands for nothing as well.
      const body: JsonObject = { model, input: input.map(text => text || ' ') };
      const what = `embeddings of ${model}`;
      throwIfAborted(signal);
      const asked = vendorJson(endpoint, { path: '/embeddings', body, what, timeoutMs, signal });
      const answer = await asked.catch((error: unknown) => {
        if (mayBeBilled(error)) report?.(tokensOf(undefined, input), true);
        throw error;
      });
      report?.(tokensOf(answer.usage, input));
      vectors.push(...vectorsOf(answer.data, input.length));
    }
    const [first] = vectors;
    if (vectors.some(vector => vector.length !== first?.length))
      throw badUpstream('The embeddings differ in length.', false);
    return vectors;
  },
});

/** As the vendor counts them; estimated where it does not tell. */
function tokensOf(usage: unknown, texts: readonly string[]): number {
  const reported = isRecord(usage) ? (usage.prompt_tokens ?? usage.total_tokens) : undefined;
  if (typeof reported === 'number' && Number.isFinite(reported) && reported >= 0) return reported;
  return texts.reduce((sum, text) => sum + estimateTokens(text), 0);
}

/** In the order of the texts, whatever the order of the answer. */
function vectorsOf(data: unknown, wanted: number): Float32Array[] {
  const vectors: (Float32Array | undefined)[] = Array.from({ length: wanted });
  for (const [at, row] of recordsIn(data).entries()) {
    const index = typeof row.index === 'number' ? row.index : at;
    const { embedding } = row;
    const sound = Array.isArray(embedding) && embedding.length > 0 && embedding.every(value => Number.isFinite(value));
    if (sound && index >= 0 && index < wanted) vectors[index] = Float32Array.from(embedding);
  }
  const found = vectors.filter(vector => vector !== undefined);
  if (found.length !== wanted) throw badUpstream(`${wanted} texts were sent, ${found.length} embeddings came back.`);
  return found;
}

/** `own`: the address of a vendor, who wants a key; absent: a server of the operator's, who tells its address. */
const places: Readonly<Record<string, { envName: string; keyName: string; own?: string }>> = {
  openai: { envName: 'OPENAI_BASE_URL', keyName: 'OPENAI_API_KEY', own: openai.baseUrl },
  custom: { envName: 'CUSTOM_API_URL', keyName: 'CUSTOM_API_KEY' },
  zhipu: { envName: 'ZHIPU_BASE_URL', keyName: 'ZHIPUAI_API_KEY', own: zhipu.baseUrl },
};

/** The embedder that `provider:model` names. Throws `CONFIG` for a provider without embeddings or without a key. */
export function namedEmbedder(name: string, settingsOf: (provider: string) => ProviderSettings, now: () => number) {
  const at = name.indexOf(':');
  const provider = name.slice(0, Math.max(0, at)).trim().toLowerCase();
  const model = name.slice(at + 1).trim();
  const place = Object.hasOwn(places, provider) ? places[provider] : undefined;
  if (!place || model === '') {
    throw configError(`EMBEDDING_MODEL is ${JSON.stringify(name)}, which names no embedding model.`, {
      next: `Set it to provider:model, the provider being one of ${Object.keys(places).join(', ')}, such as zhipu:embedding-3.`,
    });
  }
  const { apiKey, apiUrl, baseUrl: set } = settingsOf(provider);
  const { envName, keyName, own } = place;
  const baseUrl = own === undefined ? apiUrl : apiKey && (set ?? own);
  if (baseUrl === undefined) {
    throw configError(`EMBEDDING_MODEL names ${provider}, which is not configured.`, {
      next: `Set ${own === undefined ? envName : keyName}, or name another provider.`,
    });
  }
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return createEmbedder({ provider, baseUrl: checkedBaseUrl(baseUrl, envName), headers, keyName, now }, model);
}
