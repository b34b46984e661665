import { readFile } from 'node:fs/promises';
import { Language as Grammar, Parser, type Tree } from 'web-tree-sitter';
import type { Language } from './language.ts';

const fromSource = import.meta.url.endsWith('.ts');

/** The build puts the files beside the program; from source they are where the packages have them. */
function wasmFile(name: string): URL {
  if (!fromSource) return new URL(`./grammars/${name}`, import.meta.url);
  const folder = name === 'web-tree-sitter.wasm' ? 'web-tree-sitter' : '@vscode/tree-sitter-wasm/wasm';
  return new URL(`../../../node_modules/${folder}/${name}`, import.meta.url);
}

let runtime: Promise<void> | undefined;
const grammars = new Map<Language, Promise<Grammar>>();

async function startRuntime(): Promise<void> {
  await Parser.init({ wasmBinary: await readFile(wasmFile('web-tree-sitter.wasm')) });
}

async function loadGrammar(language: Language): Promise<Grammar> {
  runtime ??= startRuntime();
  await runtime;
  return Grammar.load(await readFile(wasmFile(`tree-sitter-${language}.wasm`)));
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
