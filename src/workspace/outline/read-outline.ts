import { readFile } from 'node:fs/promises';
import { brotliDecompressSync } from 'node:zlib';
import { Language as Grammar, Parser, type Tree } from 'web-tree-sitter';
import { goReaders } from './go.ts';
import type { Language, Outline } from './outline.ts';
import { createWriter, type Readers, readTree } from './outline-builder.ts';
import { pythonReaders } from './python.ts';
import { typescriptReaders } from './typescript.ts';

const fromSource = import.meta.url.endsWith('.ts');

/** The build puts the files beside the program, compressed; from source they are where the packages have them. */
async function wasm(name: string): Promise<Uint8Array> {
  if (!fromSource) return brotliDecompressSync(await readFile(new URL(`./grammars/${name}.br`, import.meta.url)));
  const folder = name === 'web-tree-sitter.wasm' ? 'web-tree-sitter' : '@vscode/tree-sitter-wasm/wasm';
  return readFile(new URL(`../../../node_modules/${folder}/${name}`, import.meta.url));
}

let runtime: Promise<void> | undefined;

const grammars = new Map<Language, Promise<Grammar>>();

async function loadGrammar(language: Language): Promise<Grammar> {
  runtime ??= wasm('web-tree-sitter.wasm').then(wasmBinary => Parser.init({ wasmBinary }));
  await runtime;
  return Grammar.load(await wasm(`tree-sitter-${language}.wasm`));
}

/** Parses with a grammar that is loaded at its first use. The tree is freed when `use` is done. */
export async function withTree<Result>(language: Language, text: string, use: (tree: Tree) => Result): Promise<Result> {
  const loading = grammars.get(language) ?? loadGrammar(language);
  grammars.set(language, loading);
  const grammar = await loading;
  const parser = new Parser();
  let tree: Tree | null = null;
  try {
    parser.setLanguage(grammar);
    tree = parser.parse(text);
    if (!tree) throw new Error(`the ${language} parser gave no tree`);
    return use(tree);
  } finally {
    tree?.delete();
    parser.delete();
  }
}

const readers: Readonly<Record<Language, Readers>> = {
  typescript: typescriptReaders,
  tsx: typescriptReaders,
  python: pythonReaders,
  go: goReaders,
};

/** What a source text declares and uses. Broken source is read as far as it can be understood. */
export const readOutline = (path: string, language: Language, text: string): Promise<Outline> =>
  withTree(language, text, ({ rootNode }) => {
    const writer = createWriter(path, language, rootNode);
    readTree(writer, rootNode, readers[language]);
    return writer.outline;
  });
