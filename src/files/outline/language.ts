import { basename, extname } from 'node:path';

/** The languages that have a grammar here. */
export type Language = 'typescript' | 'tsx' | 'javascript' | 'python' | 'go';

const byExtension: Readonly<Record<string, Language>> = {
  '.ts': 'typescript',
  '.mts': 'typescript',
  '.cts': 'typescript',
  '.tsx': 'tsx',
  '.js': 'javascript',
  '.mjs': 'javascript',
  '.cjs': 'javascript',
  '.jsx': 'javascript',
  '.py': 'python',
  '.pyi': 'python',
  '.go': 'go',
};

/** Source whose calls nobody here can read. */
const withoutGrammar: Readonly<Record<string, string>> = {
  '.java': 'Java',
  '.kt': 'Kotlin',
  '.kts': 'Kotlin',
  '.scala': 'Scala',
  '.cs': 'C#',
  '.fs': 'F#',
  '.c': 'C',
  '.h': 'C',
  '.cc': 'C++',
  '.cpp': 'C++',
  '.cxx': 'C++',
  '.hpp': 'C++',
  '.rs': 'Rust',
  '.rb': 'Ruby',
  '.php': 'PHP',
  '.swift': 'Swift',
  '.m': 'Objective-C',
  '.dart': 'Dart',
  '.ex': 'Elixir',
  '.exs': 'Elixir',
  '.erl': 'Erlang',
  '.hs': 'Haskell',
  '.ml': 'OCaml',
  '.clj': 'Clojure',
  '.lua': 'Lua',
  '.pl': 'Perl',
  '.r': 'R',
  '.jl': 'Julia',
  '.zig': 'Zig',
  '.sh': 'shell',
  '.ps1': 'PowerShell',
  '.vue': 'Vue',
  '.svelte': 'Svelte',
};

export function languageOf(path: string): Language | undefined {
  return lookUp(byExtension, path);
}

/** The name of a language that has no grammar here; undefined for one that has, and for what is no program. */
export function otherLanguageOf(path: string): string | undefined {
  return lookUp(withoutGrammar, path);
}

function lookUp<Value>(table: Readonly<Record<string, Value>>, path: string): Value | undefined {
  const extension = extname(basename(path)).toLowerCase();
  return Object.hasOwn(table, extension) ? table[extension] : undefined;
}
