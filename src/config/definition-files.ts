import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord } from '../core/json.ts';
import type { ReadFile } from './settings-files.ts';

/** A file of the operator's about a CLI, parsed. */
export interface CliDocument {
  /** Absolute. */
  path: string;
  document: unknown;
}

export interface CliDocuments {
  files: CliDocument[];
  /** One sentence for each file that could not be used. */
  warnings: string[];
}

const maxFiles = 100;

/** Reads JSON files, and those of directories by their names. What is not there is left out in silence, unless it was asked for. */
export function readCliFiles(places: readonly { path: string; asked?: boolean }[], readFile: ReadFile): CliDocuments {
  const found: CliDocuments = { files: [], warnings: [] };
  for (const { path, asked } of places) {
    try {
      const stats = statSync(path, { throwIfNoEntry: false });
      if (!stats && asked) found.warnings.push(`The CLI file ${path} was left out: it does not exist.`);
      if (!stats) continue;
      const files = stats.isDirectory() ? jsonFilesIn(path) : [path];
      for (const file of files) take(file, readFile, found);
    } catch (error) {
      found.warnings.push(`The CLI files at ${path} were left out: ${reasonOf(error)}.`);
    }
  }
  return found;
}

function jsonFilesIn(folder: string): string[] {
  const names = readdirSync(folder).filter(name => name.endsWith('.json'));
  return names
    .toSorted()
    .slice(0, maxFiles)
    .map(name => join(folder, name));
}

function take(path: string, readFile: ReadFile, { files, warnings }: CliDocuments): void {
  let text: string | undefined;
  try {
    text = readFile(path);
  } catch (error) {
    warnings.push(`The CLI file ${path} was left out: ${reasonOf(error)}.`);
    return;
  }
  try {
    files.push({ path, document: JSON.parse((text ?? '').replace(/^\uFEFF/, '')) });
  } catch {
    // The parser's words quote the file.
    warnings.push(`The CLI file ${path} was left out: it is no JSON.`);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A file of the operator's about models, parsed. */
export interface ModelFile {
  /** Absent: it holds a list for each provider. */
  provider?: string;
  document: unknown;
}

export interface ModelFiles {
  files: ModelFile[];
  /** One sentence for each file that could not be used. */
  warnings: string[];
}

const suffix = /(?:M|^m)odelsFile$/;

const forAll = '';

/** Reads the files that the options ending in `ModelsFile` name. The one for all providers comes last, and wins. */
export async function readModelFiles(
  values: Readonly<Record<string, unknown>>,
  readFile: ReadFile,
): Promise<ModelFiles> {
  const files: ModelFile[] = [];
  const warnings: string[] = [];
  const named = Object.entries(values).flatMap(([name, path]): [string, string][] =>
    suffix.test(name) && typeof path === 'string' ? [[name.replace(suffix, ''), path]] : [],
  );
  for (const [owner, path] of named.toSorted(([a], [b]) => Number(a === forAll) - Number(b === forAll))) {
    const read = await readDocument(path, readFile);
    if ('problem' in read) warnings.push(`The models file ${path} was left out: ${read.problem}.`);
    else if (owner !== forAll) files.push({ provider: owner, document: read.document });
    else if (isRecord(read.document)) files.push({ document: read.document });
    else warnings.push(`The models file ${path} was left out: it is no object with a list for each provider.`);
  }
  return { files, warnings };
}

async function readDocument(path: string, readFile: ReadFile): Promise<{ document: unknown } | { problem: string }> {
  let text: string | undefined;
  try {
    text = readFile(path);
  } catch (error) {
    // The product works without it; the warning says what is missing.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
  if (text === undefined) return { problem: 'it does not exist' };
  try {
    return { document: await parsed(path, text.replace(/^\uFEFF/, '')) };
  } catch (error) {
    // The first line says what and where; the others quote the file.
    const [reason = ''] = error instanceof Error ? error.message.split('\n') : [];
    return { problem: isYaml(path) ? `it is no YAML: ${reason}` : 'it is no JSON' };
  }
}

const isYaml = (path: string) => /\.ya?ml$/i.test(path);

async function parsed(path: string, text: string): Promise<unknown> {
  if (!isYaml(path)) return JSON.parse(text);
  const { load, JSON_SCHEMA } = await import('js-yaml');
  return load(text, { schema: JSON_SCHEMA });
}
