import { basename } from 'node:path';

/** What a file is for, the most telling first: the order in which the files of a directory are sent. */
const fileClasses = ['source', 'test', 'doc', 'config', 'log', 'generated'] as const;
export type FileClass = (typeof fileClasses)[number];

const testFolders = /(?:^|\/)(?:tests?|__tests__|specs?|__mocks__|fixtures|testdata)\//i;
const testNames = /(?:^test_|[._-](?:test|spec|tests)(?:\.[^.]+)+$|_test\.[^.]+$|Tests?\.(?:java|kt|cs|swift|scala)$)/;
const generatedNames =
  /(?:\.min\.(?:js|mjs|css)|\.map|\.snap|\.lock|\.lockb|[._]pb2?(?:_grpc)?\.(?:go|py|ts|js|h|cc)|\.g\.dart|\.gen\.[^.]+|[._-]generated\.[^.]+|\.tsbuildinfo)$/i;
const lockNames = [
  'package-lock.json',
  'npm-shrinkwrap.json',
  'pnpm-lock.yaml',
  'go.sum',
  'gradle.lockfile',
  'packages.lock.json',
];
const docNames =
  /(?:\.(?:md|mdx|rst|adoc|txt|tex|org|asciidoc)|^(?:readme|changelog|license|licence|notice|authors|contributing)(?:\.[^.]*)?)$/i;
const textConfigNames = /^(?:requirements.*|constraints|cmakelists)\.txt$/i;
const logNames = /\.(?:log|logs|out|err|csv|tsv|jsonl|ndjson|trace|dump)(?:\.\d+)?$/i;
const sourceNames =
  /\.(?:[cm]?[jt]sx?|vue|svelte|astro|py|pyi|ipynb|rb|php|java|kts?|scala|groovy|clj[cs]?|cs|fs|vb|go|rs|zig|c|h|cc|cpp|cxx|hh|hpp|m|mm|swift|dart|lua|r|jl|ex|exs|erl|hs|ml|mli|elm|nim|pl|pm|sh|bash|zsh|fish|ps1|bat|cmd|sql|graphql|gql|proto|tf|hcl|html?|css|scss|sass|less|asm|s|sol|cu|glsl|wgsl|v|sv|vhd|f90|pas|d|cr|nix)$/i;
const generatedText =
  /@generated\b|\bcode generated\b.{0,200}\bdo not edit\b|\bautomatically generated\b.{0,200}\bdo not (?:edit|modify)\b/i;

/** By its path below the directory that was named; `text`, when it is known, may show that a tool wrote it. */
export function classifyFile(path: string, text?: string): FileClass {
  const name = basename(path);
  if (generatedNames.test(name) || lockNames.includes(name)) return 'generated';
  if (text !== undefined && generatedText.test(text.slice(0, 2_000))) return 'generated';
  if (textConfigNames.test(name)) return 'config';
  if (logNames.test(name)) return 'log';
  if (docNames.test(name)) return 'doc';
  if (testFolders.test(path) || testNames.test(name)) return 'test';
  if (sourceNames.test(name)) return 'source';
  // configuration and whatever nobody knows
  return 'config';
}

export function classRank(kind: FileClass): number {
  return fileClasses.indexOf(kind);
}
