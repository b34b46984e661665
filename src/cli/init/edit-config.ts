import type { JsonObject } from '../../core/json.ts';
import { editJson, readJson } from './edit-json.ts';
import { editToml, hasTomlTable } from './edit-toml.ts';
import type { HostDefinition } from './hosts.ts';

/** The text of a host's file with this entry under a name, whatever stood there before. */
export function withEntry(host: HostDefinition, text: string, name: string, entry: JsonObject): string {
  return host.format === 'toml' ? editToml(text, [host.key, name], entry) : editJson(text, [host.key, name], entry);
}

export function hasEntry(host: HostDefinition, text: string, name: string): boolean {
  return host.format === 'toml' ? hasTomlTable(text, [host.key, name]) : readJson(text, [host.key, name]) !== undefined;
}

/**
 * The text without the entry. Where one of the former texts is what the entry was once put into, it is that one, to the byte:
 * `''` says that there was no file.
 */
export function withoutEntry(host: HostDefinition, text: string, name: string, former: readonly string[]): string {
  const path = [host.key, name] as const;
  if (host.format === 'toml') {
    const rest = editToml(text, path, undefined);
    const isSame = (before: string) => !hasTomlTable(before, path) && before.trimEnd() === rest.trimEnd();
    return former.find(isSame) ?? rest;
  }
  const entry: JsonObject = JSON.parse(JSON.stringify(readJson(text, path) ?? {}));
  const isSame = (before: string) => {
    try {
      return readJson(before, path) === undefined && editJson(before, path, entry) === text;
    } catch {
      // A backup that is no JSON is not where this text comes from.
      return false;
    }
  };
  return former.find(isSame) ?? editJson(text, path, undefined);
}
