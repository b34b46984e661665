/** One import, export-from or `import()` of a file. */
export interface FoundImport {
  /** Undefined when an `import()` has an argument other than a plain string. */
  specifier: string | undefined;
  /** Counted from 1. */
  line: number;
  /** Written as `import()`. */
  lazy: boolean;
  /** Names types only, as `import type` does. The linter turns `{ type A }` into `type { A }`, so both count. */
  types: boolean;
}

const staticImport = /^import\s*(?:type\b\s*)?[\w$*{},\s'"]*?\bfrom\s*(?=['"])/;
const bareImport = /^import\s*(?=['"])/;
const exportFrom = /^export\s*(?:type\b\s*)?(?:\*(?:\s*as\s+[\w$]+)?|\{[^}]*\})\s*from\s*(?=['"])/;
const call = /^import\s*\(\s*/;
const typesAlone = /^(?:import|export)\s+type\b(?!\s*(?:,|from\b))|^(?:import|export)\s*\{(?:\s*type\s[^,}]*,?)+\s*\}/;

export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', at + 1)) line++;
  return line;
}

function readString(source: string, code: string, at: number): string | undefined {
  const quote = code[at];
  if (quote !== "'" && quote !== '"') return undefined;
  const end = code.indexOf(quote, at + 1);
  return end < 0 ? undefined : source.slice(at + 1, end);
}

/** `import(x) {` and `import(x): T` declare a method of that name. */
function isMethod(code: string, open: number): boolean {
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    if (code[at] === '(') depth++;
    if (code[at] === ')') depth--;
    if (depth === 0) return /^\)\s*[{:]/.test(code.slice(at, at + 100));
  }
  return false;
}

/** Finds all imports of a file. `code` is its source with strings and comments blanked. */
export function findImports(source: string, code: string): FoundImport[] {
  const found: FoundImport[] = [];
  for (const { index } of code.matchAll(/(?<![\w$.])(?:import|export)\b/g)) {
    const rest = code.slice(index, index + 20_000);
    const line = lineAt(code, index);
    const head = (bareImport.exec(rest) ?? staticImport.exec(rest) ?? exportFrom.exec(rest))?.[0];
    if (head) {
      const specifier = readString(source, code, index + head.length);
      found.push({ specifier, line, lazy: false, types: typesAlone.test(head) });
      continue;
    }
    const lazyHead = call.exec(rest)?.[0];
    if (!lazyHead) continue;
    const specifier = readString(source, code, index + lazyHead.length);
    if (specifier === undefined && isMethod(code, index + rest.indexOf('('))) continue;
    found.push({ specifier, line, lazy: true, types: false });
  }
  return found;
}
