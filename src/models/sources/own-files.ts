import { isRecord } from '../../core/json.ts';
import type { ModelInfo } from '../../core/model.ts';
import { type Overlaid, overlay } from '../catalogue/overlay.ts';

/** A file in which the operator says what models there are, or what is different about them. */
export interface ModelsFile {
  /** The provider whose models it lists; absent: it has a list for each provider, under the provider's id. */
  provider?: string;
  /** As parsed. */
  document: unknown;
}

/** Lays the operator's files over the models, in order; later ones win. */
export function overlayFiles(
  models: readonly ModelInfo[],
  files: readonly ModelsFile[],
  providers: readonly string[],
): Overlaid {
  const warnings: string[] = [];
  let laid = [...models];
  for (const [provider, list] of files.flatMap(listsOf)) {
    if (!providers.includes(provider)) {
      warnings.push(`The models file names the provider "${provider}", which there is not; its models were left out.`);
      continue;
    }
    const next = overlay(laid, provider, list);
    laid = next.models;
    warnings.push(...next.warnings);
  }
  return { models: laid, warnings };
}

function listsOf({ provider, document }: ModelsFile): [provider: string, list: unknown][] {
  if (provider !== undefined) return [[provider, document]];
  if (!isRecord(document)) return [];
  return Object.entries(document).filter(([name]) => !name.startsWith('_'));
}
