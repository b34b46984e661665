import { extname } from 'node:path';

/** The languages that have a grammar here; JavaScript is read as TSX, which takes all of it. */
export type Language = 'typescript' | 'tsx' | 'python' | 'go';

/** Extensions of the languages that have a grammar here. */
const withGrammar: Readonly<Record<string, Language>> = {
  ...{ '.ts': 'typescript', '.mts': 'typescript', '.cts': 'typescript', '.tsx': 'tsx' },
  ...{ '.js': 'tsx', '.mjs': 'tsx', '.cjs': 'tsx', '.jsx': 'tsx' },
  ...{ '.py': 'python', '.pyi': 'python', '.go': 'go' },
};

/** Languages whose calls nobody here can read, each with its extensions. */
const withoutGrammar: readonly string[] = [
  ...['Java .java', 'Kotlin .kt .kts', 'Scala .scala', 'C# .cs', 'F# .fs', 'C .c .h', 'C++ .cc .cpp .cxx .hpp'],
  ...['Rust .rs', 'Ruby .rb', 'PHP .php', 'Swift .swift', 'Objective-C .m', 'Dart .dart', 'Elixir .ex .exs'],
  ...['Erlang .erl', 'Haskell .hs', 'OCaml .ml', 'Clojure .clj', 'Lua .lua', 'Perl .pl', 'R .r', 'Julia .jl'],
  ...['Zig .zig', 'shell .sh', 'PowerShell .ps1', 'Vue .vue', 'Svelte .svelte'],
];

const otherByExtension = new Map(
  withoutGrammar.flatMap(row => {
    const [language = '', ...extensions] = row.split(' ');
    return extensions.map(extension => [extension, language] as const);
  }),
);

export function languageOf(path: string): Language | undefined {
  const extension = extname(path).toLowerCase();
  return Object.hasOwn(withGrammar, extension) ? withGrammar[extension] : undefined;
}

/** The name of a language that has no grammar here; undefined for one that has, and for what is no program. */
export const otherLanguageOf = (path: string): string | undefined => otherByExtension.get(extname(path).toLowerCase());

/**
 * What is written before a dot, and what after it: `this.store.save` is `['this', 'store', 'save']`. A part that is called or
 * constructed ends in `()`; so does a type, because a value of it is what its constructor would give. `?` is anything else.
 */
export type Chain = readonly string[];

export type SymbolKind = 'function' | 'method' | 'class' | 'interface' | 'type' | 'object';

/** A stretch of source with names of its own. Number 0 is the file. */
export interface Scope {
  /** Number of the scope around it; absent for the file. */
  parent?: number;
  /** `class`: its names are members, which code inside reaches only through a receiver. */
  kind: 'file' | 'class' | 'function' | 'block';
  /** Number of the symbol whose source this is part of; absent outside of all. */
  symbol?: number;
  /** The receiver's name in a method (`this`, Python's `self`, whatever Go calls it), and its type. */
  self?: { name: string; type: Chain };
}

export interface OutlineSymbol {
  name: string;
  kind: SymbolKind;
  /** Lines, from 1. */
  from: number;
  to: number;
  /** Where its name is declared. */
  scope: number;
  /** Its own scope: members of a class, names of a function. */
  body?: number;
  /** Number of the class, interface or object that it is a member of. */
  owner?: number;
  /** What a Go method belongs to, which may stand in another file, or a function that JavaScript hangs on something. */
  ownerName?: string;
  /** A signature without a body. */
  declared: boolean;
  /** What a call of it gives, where that is written down. */
  returns?: Chain;
}

/** A name that comes from another file. */
export interface Import {
  /** The name here; `*` for all of them. */
  local: string;
  /** The module as written. */
  from: string;
  /** The name there; `*` for the module itself. */
  name: string;
  line: number;
  /** The package may say another name for itself: this one is only the end of its path. */
  guessed?: boolean;
}

/** A name that other files may use. */
export interface Export {
  /** The name outside; `*` for all of `from`'s. */
  as: string;
  /** The name here, or in `from`; `*` for the module itself. */
  name: string;
  /** The module that it is passed on from. */
  from?: string;
  line: number;
}

/** A variable, parameter or field. */
export interface Variable {
  scope: number;
  name: string;
  /** What it holds, where the source says so in place. */
  value?: Chain;
  /** `typed`: that is its type, whatever it is set to. `assigned`: set to this later; it is declared here or in a scope around. */
  how?: 'typed' | 'assigned';
}

export type CallKind = 'calls' | 'constructs' | 'passes' | 'renders';

/** One place that uses a function or class. */
export interface Call {
  scope: number;
  target: Chain;
  kind: CallKind;
  line: number;
}

export interface TypeRelation {
  /** Number of the class or interface. */
  symbol: number;
  kind: 'extends' | 'implements' | 'embeds';
  target: Chain;
  line: number;
}

/** What one file declares and uses, by its syntax alone. */
export interface Outline {
  path: string;
  language: Language;
  scopes: Scope[];
  symbols: OutlineSymbol[];
  imports: Import[];
  exports: Export[];
  variables: Variable[];
  calls: Call[];
  relations: TypeRelation[];
  /** What a Go file calls its package. */
  packageName?: string;
  /** It has syntax errors: what they hide is missing. */
  broken: boolean;
}

/** A scope and those around it, with their numbers, from the inside outwards. */
export function scopesAround({ scopes }: Outline, from: number): (Scope & { number: number })[] {
  const found: (Scope & { number: number })[] = [];
  let scope = scopes[from];
  for (let number = from; scope; scope = scopes[number]) {
    found.push({ ...scope, number });
    number = scope.parent ?? -1;
  }
  return found;
}
