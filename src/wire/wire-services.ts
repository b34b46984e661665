import { type AppConfig, providerSetup } from '../app/settings.ts';
import { isAppError } from '../core/errors.ts';
import type { Clock, Emit, SharedState } from '../core/ports.ts';
import type { VendorFiles } from '../models/extras/documents/vendor-files.ts';
import { createGlmFiles } from '../models/extras/glm/glm-files.ts';
import { searchEngineOf } from '../models/extras/glm/search-engine.ts';
import type { ProviderDefinition, ProviderSettings } from '../models/provider.ts';
import { namedEmbedder, type VendorEmbedder } from '../providers/embeddings.ts';
import { kimiDoor } from '../providers/moonshot/api.ts';
import { createKimiFiles } from '../providers/moonshot/files.ts';
import { accountOf, createDocumentLibrary, type DocumentLibrary } from '../providers/shared/document-library.ts';
import { glmDoor } from '../providers/zhipu/api.ts';
import { createGlmWebSearch, type WebSearcher } from '../providers/zhipu/services.ts';

/** What vendors do beside answering. Each is there only where its vendor is configured. */
export interface Services {
  /** Ids of the providers that can be asked. */
  configured: readonly string[];
  documents?: DocumentLibrary;
  web?: WebSearcher;
  /** Files of GLM's agents. */
  glmFiles?: VendorFiles;
  embedder?: VendorEmbedder;
  /** Why there is none, where one is named. */
  noEmbedder?: string;
}

const megabyte = 1024 * 1024;
const usualMegabytes = 100;

export interface ServiceSurroundings {
  clock: Clock;
  state: SharedState;
  emit: Emit;
  extraProviders?: readonly ProviderDefinition[];
}

/** Settings → what vendors do beside answering. Opens nothing; what is set up badly is left out with a warning. */
export function wireServices(config: AppConfig, { clock, state, emit, extraProviders }: ServiceSurroundings): Services {
  const { settingsOf, usable, configured } = providerSetup(config, extraProviders);
  const { embeddingModel, offline } = config.values.app;
  const now = () => clock.now();
  const sound = <Service extends object>(make: () => Service): Service | undefined => {
    try {
      return make();
    } catch (error) {
      if (!isAppError(error)) throw error;
      emit({ type: 'warning', where: 'configuration', message: error.message });
      return undefined;
    }
  };
  const embedderOf = (name: string): Pick<Services, 'embedder' | 'noEmbedder'> => {
    const missing = (why: string) => ({ noEmbedder: `There are no vectors, so words alone decide: ${why}` });
    try {
      const embedder = namedEmbedder(name, settingsOf, now);
      if (usable(name.split(':', 1)[0]?.trim().toLowerCase() ?? '')) return { embedder };
      const mode = offline ? '--offline' : '--local-only';
      return missing(`EMBEDDING_MODEL is ${name}, which is not on this machine or network, and ${mode} is on.`);
    } catch (error) {
      if (!isAppError(error)) throw error;
      emit({ type: 'warning', where: 'configuration', message: error.message });
      return missing(error.message);
    }
  };
  return {
    configured,
    ...(configured.includes('moonshot') && sound(() => kimiServices(settingsOf('moonshot'), { clock, state }))),
    ...(configured.includes('zhipu') && sound(() => glmServices(settingsOf('zhipu'), now))),
    ...(embeddingModel !== undefined && embedderOf(embeddingModel)),
  };
}

function kimiServices(settings: ProviderSettings, { clock, state }: { clock: Clock; state: SharedState }) {
  const door = kimiDoor(settings, () => clock.now());
  const files = createKimiFiles(door, Number(settings.filesMaxMb ?? usualMegabytes) * megabyte);
  const account = accountOf(settings.apiKey ?? '');
  return { documents: createDocumentLibrary({ provider: door.provider, files, account, state, clock }) };
}

function glmServices(settings: ProviderSettings, now: () => number) {
  const door = glmDoor(settings, now);
  return { web: createGlmWebSearch(door, searchEngineOf(settings, door.baseUrl)), glmFiles: createGlmFiles(door) };
}
