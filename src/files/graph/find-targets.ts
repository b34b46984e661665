import type { CallGraph, GraphNode } from '../../workspace/call-graph/call-graph.ts';
import { languageOf } from '../outline/language.ts';

export interface FoundTargets {
  /** What the description names. */
  targets: GraphNode[];
  /** Symbols with similar names, where it names none. */
  near: string[];
}

/** Words of any description: a function of that name has to be written as code to be meant. */
const ordinary = new Set(
  'a an and are as at by can do does for from get how in into is it its method of on or function class the this that to trace use uses used when where which who why with'.split(
    ' ',
  ),
);
const mostWords = 100;
const mostTargets = 6;
const mostNear = 8;

/**
 * The symbols that a description in prose names. Words that look like code (`a.b`, `camelCase`, `snake_case`, `in ticks`,
 * `called()`) are what is meant; where there are none, plain words are. A path in the description chooses among namesakes.
 */
export function findTargets(graph: CallGraph, description: string, hints: readonly string[]): FoundTargets {
  const symbols = graph.nodes.filter(node => node.declared);
  const words = wordsOf(description)
    .filter(word => !languageOf(bare(word)))
    .slice(0, mostWords);
  const code = [...hints, ...words.filter(word => /[._$]|[a-z][A-Z]|\(\)$|^`/.test(word))].map(bare);
  const plain = words.map(bare).filter(word => !ordinary.has(word));
  // A name that is there as code and names nothing is not made up for by words around it.
  const tries = code.length > 0 ? [code] : [plain.filter(word => /^[A-Z]/.test(word)), plain];
  for (const candidates of tries) {
    const targets = candidates.flatMap(word => namedBy(symbols, word));
    if (targets.length > 0) return { targets: narrowed([...new Set(targets)], description), near: [] };
  }
  const folded = [...code, ...plain].map(word => word.toLowerCase()).filter(word => word.length > 2);
  const near = symbols.filter(({ name }) => folded.some(word => resembles(name.toLowerCase(), word)));
  return { targets: [], near: [...new Set(near.map(({ name }) => name))].slice(0, mostNear) };
}

function resembles(name: string, word: string): boolean {
  return name.includes(word) || (name.length > 2 && word.includes(name));
}

function wordsOf(description: string): string[] {
  return (
    description.match(/`[^`\s]+`|[\p{L}_$][\p{L}\p{N}_$]*(?:(?:\.|::|#|->)[\p{L}_$][\p{L}\p{N}_$]*)*(?:\(\))?/gu) ?? []
  );
}

function bare(word: string): string {
  return word
    .replaceAll('`', '')
    .replace(/\(.*$/, '')
    .replace(/::|#|->/g, '.');
}

function namedBy(symbols: readonly GraphNode[], word: string): GraphNode[] {
  const whole = symbols.filter(({ name }) => name === word || name.endsWith(`.${word}`));
  if (whole.length > 0 || !word.includes('.')) return whole;
  // `package.Function` in Go and Python: the part before the last dots may be a file or a folder.
  const [last = word, before = ''] = word.split('.').reverse();
  return symbols.filter(
    ({ name, outline }) =>
      name === last && new RegExp(`(?:^|/)${escaped(before)}(?:/[^/]+|\\.\\w+)$`).test(outline.path),
  );
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** Those in a file that the description names, if there are any; no more than can be traced. */
function narrowed(targets: GraphNode[], description: string): GraphNode[] {
  const inNamed = targets.filter(({ outline }) => {
    const file = outline.path.split('/').at(-1) ?? '';
    return description.includes(file);
  });
  return (inNamed.length > 0 ? inNamed : targets).slice(0, mostTargets);
}
