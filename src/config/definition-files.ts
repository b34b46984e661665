import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { asError } from '../core/errors.ts';
import { isRecord, parsedJson } from '../core/json.ts';
import type { ReadFile } from './settings-files.ts';

const maxFiles = 100;

/**
 * Reads the operator's JSON files about CLIs (absolute paths), and those of directories by their names. What is not there is left out
 * in silence, unless it was asked for; what could not be used has a sentence among the warnings.
 */
export function readCliFiles(places: readonly { path: string; asked?: boolean }[], readFile: ReadFile) {
  const found: { files: { path: string; document: unknown }[]; warnings: string[] } = { files: [], warnings: [] };
  for (const { path, asked } of places) {
    try {
      const stats = statSync(path, { throwIfNoEntry: false });
      if (!stats && asked) found.warnings.push(`The CLI file ${path} was left out: it does not exist.`);
      if (!stats) continue;
      for (const file of stats.isDirectory() ? jsonFilesIn(path) : [path]) {
        const read = readDocument(file, readFile);
        if ('document' in read) found.files.push({ path: file, document: read.document });
        else found.warnings.push(`The CLI file ${file} was left out: ${read.problem}.`);
      }
    } catch (error) {
      found.warnings.push(`The CLI files at ${path} were left out: ${asError(error).message}.`);
    }
  }
  return found;
}

function jsonFilesIn(folder: string): string[] {
  const names = readdirSync(folder).filter(name => name.endsWith('.json'));
  names.sort().splice(maxFiles);
  return names.map(name => join(folder, name));
}

const suffix = /(?:M|^m)odelsFile$/;

const forAll = '';

/**
 * Reads the files about models that the options ending in `ModelsFile` name. The one for all providers comes last, and wins: it names
 * no provider and holds a list for each. What could not be used has a sentence among the warnings.
 */
export async function readModelFiles(values: Readonly<Record<string, unknown>>, readFile: ReadFile) {
  const files: { provider?: string; document: unknown }[] = [];
  const warnings: string[] = [];
  const named = Object.entries(values).flatMap(([name, path]): [string, string][] =>
    suffix.test(name) && typeof path === 'string' ? [[name.replace(suffix, ''), path]] : [],
  );
  const yaml = named.some(([, path]) => isYaml(path)) ? await import('js-yaml') : undefined;
  for (const [owner, path] of named.toSorted(([a], [b]) => Number(a === forAll) - Number(b === forAll))) {
    const read = readDocument(path, readFile, yaml);
    if ('problem' in read) warnings.push(`The models file ${path} was left out: ${read.problem}.`);
    else if (owner !== forAll) files.push({ provider: owner, document: read.document });
    else if (isRecord(read.document)) files.push({ document: read.document });
    else warnings.push(`The models file ${path} was left out: it is no object with a list for each provider.`);
  }
  return { files, warnings };
}

const isYaml = (path: string) => /\.ya?ml$/i.test(path);

/** What a file holds, or why it can't be used: the product works without it. */
function readDocument(path: string, readFile: ReadFile, yaml?: typeof import('js-yaml')) {
  try {
    const text = readFile(path);
    if (text === undefined) return { problem: 'it does not exist' };
    if (yaml && isYaml(path)) return yamlDocument(text, yaml);
    const document = parsedJson(text);
    return document === undefined ? { problem: 'it is no JSON' } : { document };
  } catch (error) {
    return { problem: asError(error).message };
  }
}

function yamlDocument(text: string, { load, JSON_SCHEMA }: typeof import('js-yaml')) {
  try {
    return { document: load(text.replace(/^\uFEFF/, ''), { schema: JSON_SCHEMA }) };
  } catch (error) {
    // The first line says what and where; the others quote the file.
    return { problem: `it is no YAML: ${asError(error).message.split('\n', 1)[0]}` };
  }
}
