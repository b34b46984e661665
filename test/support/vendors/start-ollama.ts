import { createHash } from 'node:crypto';
import { checkOllama } from './check-ollama.ts';
import type { FakeVendor, FakeVendorOptions, ListedModel } from './fake-vendor.ts';
import { notPulled, ollamaRefusal, ollamaStatusBody } from './ollama-refusal.ts';
import { ollamaWire } from './ollama-wire.ts';
import { tokensOf } from './prompt.ts';
import { readOllama } from './read-ollama.ts';
import { startVendor } from './start-vendor.ts';
import type { VendorKind } from './vendor-kind.ts';
import { jsonLines } from './wire.ts';
import { recordOf, stringOf } from './wire-values.ts';

/**
 * Ollama: POST /api/chat, GET /api/tags and POST /api/show. What a real server would cut away in silence, a prompt wider
 * than `num_ctx`, is refused here whatever the request says.
 */
export function startOllama(options: FakeVendorOptions = {}): Promise<FakeVendor> {
  const keys = options.keys ?? ['test-key'];
  const capabilitiesOf = (id: string) => found(options.models ?? [], id)?.capabilities;
  const kind: VendorKind = {
    root: '/api',
    framing: jsonLines,
    routes: { 'POST /chat': 'ollama', 'GET /tags': 'models', 'POST /show': 'models' },
    authorise({ authorization = '' }) {
      if (keys.length === 0) return undefined;
      const [scheme, key = ''] = authorization.split(' ');
      return scheme === 'Bearer' && keys.includes(key) ? undefined : ollamaRefusal('unauthorized', 401);
    },
    check: (_dialect, body) => checkOllama(body, capabilitiesOf(stringOf(body.model))),
    read(_dialect, body) {
      const reading = readOllama(body);
      return { ...reading, model: found(options.models ?? [], reading.model)?.id ?? reading.model };
    },
    // Its cache saves time; nothing tells of it.
    cache: (_dialect, body) => ({ read: 0, written: 0, wire: reply => ollamaWire(body, reply) }),
    listing: (models, _query, body) =>
      body === undefined ? tags(models) : show(models, stringOf(recordOf(body).model)),
    checkListing(models, body) {
      if (body === undefined) return undefined;
      const id = stringOf(recordOf(body).model);
      if (id === '') return ollamaRefusal('model is required');
      return found(models, id) ? undefined : notPulled(id);
    },
    headers: () => ({}),
    stamp: body => body,
    badJson: () => ollamaRefusal('invalid character in JSON body'),
    wrongAddress: () => ({ status: 404, message: '404 page not found', body: '404 page not found' }),
    unknownModel: notPulled,
    tooLong: () => ollamaRefusal('the input length exceeds the context length'),
    statusBody: ollamaStatusBody,
  };
  return startVendor(kind, tokensOf, options);
}

/** A name without a tag means `latest`. */
function found(models: readonly ListedModel[], id: string): ListedModel | undefined {
  return models.find(model => model.id === id || model.id === `${id}:latest`);
}

function tags(models: readonly ListedModel[]) {
  return {
    models: models.map(({ id, remote }) => ({
      name: id,
      model: id,
      modified_at: '2025-10-03T23:34:03.409490317-07:00',
      size: 3_338_801_804,
      digest: createHash('sha256').update(id).digest('hex'),
      details: { format: 'gguf', family: 'llama', parameter_size: '4.3B', quantization_level: 'Q4_K_M' },
      ...(remote && { remote_model: id, remote_host: 'https://ollama.com:443' }),
    })),
  };
}

function show(models: readonly ListedModel[], id: string) {
  const { window, capabilities } = found(models, id) ?? {};
  return {
    modelfile: `FROM ${id}`,
    template: '{{ .Prompt }}',
    details: { format: 'gguf', family: 'llama', parameter_size: '4.3B', quantization_level: 'Q4_K_M' },
    model_info: {
      'general.architecture': 'llama',
      'general.parameter_count': 4_300_000_000,
      ...(window !== undefined && { 'llama.context_length': window }),
      'llama.embedding_length': 4_096,
    },
    ...(capabilities && { capabilities }),
  };
}
