import { readings } from './lookup.ts';
import { findProvider, settingOf } from './roster.ts';
import type { Scene } from './scene.ts';
import { splitSuffix } from './suffixes.ts';

/** What stands behind the colon of models that come in several sizes: `8b`, `8x7b-instruct-q4_K_M`, `latest`, `cloud`. */
const tag = /^(?:latest|cloud|e?\d+(?:x\d+)?(?:\.\d+)?[bm](?:[-.].*)?|.*-cloud|.*q\d(?:_\w+)?)$/i;

/** The provider that a name begins with, when it is one we know of and this installation does not have. */
export function missingProvider(scene: Scene, name: string): string | undefined {
  const prefix = prefixOf(scene, name);
  return prefix !== undefined && settingOf(prefix) ? prefix : undefined;
}

/**
 * What a name that nothing bears puts before its colon, when that can only be meant for a provider: what follows is a model
 * that we know, or is neither a suffix nor the tag of a local model.
 */
export function unheardProvider(scene: Scene, name: string): string | undefined {
  const prefix = prefixOf(scene, name);
  if (prefix === undefined) return undefined;
  const rest = name.slice(prefix.length + 1).trim();
  if (rest === '') return undefined;
  if (readings(scene, rest).next().done === false) return prefix;
  const isModel = /\d/.test(prefix) || tag.test(rest) || splitSuffix(name)?.ask !== undefined;
  return isModel ? undefined : prefix;
}

/** A plain word before the first colon that is no provider of this installation; the whole is no model's id. */
function prefixOf({ roster }: Scene, name: string): string | undefined {
  const prefix = /^([a-z][\w-]*):/i.exec(name)?.[1];
  if (prefix === undefined || findProvider(roster, prefix)) return undefined;
  return roster.models.some(model => model.id === name) ? undefined : prefix.toLowerCase();
}
