import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ToolDefinition } from '../../src/calls/tool.ts';
import { isRecord } from '../../src/core/json.ts';
import type { OptionSpec } from '../../src/core/option.ts';
import type { ProviderDefinition } from '../../src/models/provider.ts';
import type { ListSpec, Member } from './member-list.ts';

/** What one file of a source tree exports under a name; undefined when there is no such file. */
export async function loadExport(root: string, path: string, name: string): Promise<unknown> {
  const file = resolve(join(root, path));
  if (!existsSync(file)) return undefined;
  const loaded: unknown = await import(pathToFileURL(file).href);
  if (!isRecord(loaded) || !(name in loaded)) throw new Error(`${path} exports no "${name}"`);
  return loaded[name];
}

function isOptionSpec(value: unknown): value is OptionSpec {
  return (
    isRecord(value) && Array.isArray(value.env) && typeof value.doc === 'string' && typeof value.group === 'string'
  );
}

export function isOptions(value: unknown): value is Record<string, OptionSpec> {
  return isRecord(value) && Object.values(value).every(isOptionSpec);
}

function isProvider(value: unknown): value is ProviderDefinition {
  return isRecord(value) && typeof value.id === 'string' && Array.isArray(value.names) && isOptions(value.options);
}

function isTool(value: unknown): value is ToolDefinition {
  return isRecord(value) && typeof value.name === 'string' && isRecord(value.fields) && isRecord(value.mode);
}

async function loadMembers<Definition>(
  root: string,
  spec: ListSpec,
  members: readonly Member[],
  is: (value: unknown) => value is Definition,
): Promise<Definition[]> {
  const loaded: Definition[] = [];
  for (const { path, exportName } of members) {
    const value = await loadExport(root, `${spec.folder}/${path}.ts`, exportName);
    if (!is(value)) throw new Error(`${spec.folder}/${path}.ts: "${exportName}" is no definition of ${spec.list}`);
    loaded.push(value);
  }
  return loaded;
}

export async function loadTools(root: string, spec: ListSpec, members: readonly Member[]): Promise<ToolDefinition[]> {
  const tools = await loadMembers(root, spec, members, isTool);
  for (const [at, { name }] of tools.entries()) {
    const expected = members[at]?.stem.replaceAll('-', '_');
    if (name !== expected)
      throw new Error(
        `${spec.folder}: the tool of the file ${members[at]?.stem}.ts is called "${name}", not "${expected}"`,
      );
  }
  return tools;
}

export function loadProviders(root: string, spec: ListSpec, members: readonly Member[]): Promise<ProviderDefinition[]> {
  return loadMembers(root, spec, members, isProvider);
}
