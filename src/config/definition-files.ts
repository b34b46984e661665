import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
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

const mostFiles = 100;

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
    .slice(0, mostFiles)
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
