import type { ModelInfo } from '../../src/core/model.ts';
import { loadCatalogue } from '../../src/models/catalogue/model-sources.ts';

/** A row of the catalogue, as routing hands it to a provider. */
export function catalogueModel(provider: string, id: string): ModelInfo {
  const found = loadCatalogue().find(model => model.provider === provider && model.id === id);
  if (!found) throw new Error(`The catalogue has no ${provider}:${id}.`);
  return found;
}
