/** Words after which a slash begins a regular expression, not a division. */
const beforeExpression = new Set(
  'return typeof case in of new delete void throw else do instanceof yield await default extends'.split(' '),
);

/** Returns the index after the quoted string that starts at `start`, or `start + 1` when its line ends first. */
function endOfString(source: string, start: number): number {
  const quote = source[start];
  for (let at = start + 1; at < source.length; at++) {
    const char = source[at];
    if (char === '\\') at++;
    else if (char === quote) return at + 1;
    else if (char === '\n') break;
  }
  return start + 1;
}

/** Returns the index after the regular expression that starts at `start`, or `start + 1` when it is not one. */
function endOfRegex(source: string, start: number): number {
  let inClass = false;
  for (let at = start + 1; at < source.length; at++) {
    const char = source[at];
    if (char === '\n') break;
    if (char === '\\') at++;
    else if (char === '[') inClass = true;
    else if (char === ']') inClass = false;
    else if (char === '/' && !inClass) return at + 1;
  }
  return start + 1;
}

/** Returns where the text of a template that starts at `from` ends: at its backtick or at a `${`. */
function endOfTemplateText(source: string, from: number): { at: number; opens: boolean } {
  for (let at = from; at < source.length; at++) {
    const char = source[at];
    if (char === '\\') at++;
    else if (char === '`') return { at, opens: false };
    else if (char === '$' && source[at + 1] === '{') return { at, opens: true };
  }
  return { at: source.length, opens: false };
}

function endOfComment(source: string, start: number): number {
  const line = source[start + 1] !== '*';
  const end = source.indexOf(line ? '\n' : '*/', start + 2);
  if (end < 0) return source.length;
  return line ? end : end + 2;
}

/**
 * Replaces comments and the contents of strings, templates and regular expressions with blanks. Length, lines and quotes stay
 * the same, so that a match in the result is code and has the same index in the source.
 */
export function blankCode(source: string): string {
  const out = source.split('');
  const blank = (from: number, to: number): void => {
    for (let at = from; at < Math.min(to, out.length); at++) if (out[at] !== '\n') out[at] = ' ';
  };
  /** The number of open braces within each unclosed `${`. */
  const braces: number[] = [];
  let afterValue = false;
  let at = 0;

  const templateText = (from: number): number => {
    const end = endOfTemplateText(source, from);
    blank(from, end.at);
    if (end.opens) braces.push(0);
    afterValue = !end.opens;
    return end.at + (end.opens ? 2 : 1);
  };
  const quoted = (end: number): number => {
    blank(at + 1, end - 1);
    afterValue = true;
    return end;
  };
  const brace = (char: string): number => {
    const depth = braces.at(-1);
    if (depth === 0 && char === '}') {
      braces.pop();
      return templateText(at + 1);
    }
    if (depth !== undefined) braces[braces.length - 1] = depth + (char === '{' ? 1 : -1);
    afterValue = char === '}';
    return at + 1;
  };
  const slash = (): number => {
    const next = source[at + 1];
    if (next === '/' || next === '*') {
      const end = endOfComment(source, at);
      blank(at, end);
      return end;
    }
    const end = afterValue ? at + 1 : endOfRegex(source, at);
    if (end > at + 1) return quoted(end);
    afterValue = false;
    return end;
  };
  const wordOrMark = (): number => {
    const word = /^[\w$]+/.exec(source.slice(at, at + 200))?.[0];
    if (word) {
      afterValue = !beforeExpression.has(word) || source[at - 1] === '.';
      return at + word.length;
    }
    const char = source[at] ?? '';
    const doubled = (char === '+' || char === '-') && source[at + 1] === char;
    if (!/\s/.test(char)) afterValue = char === ')' || char === ']' || doubled;
    return at + (doubled ? 2 : 1);
  };

  if (source.startsWith('#!')) {
    at = endOfComment(source, 0);
    blank(0, at);
  }
  while (at < source.length) {
    const char = source[at] ?? '';
    if (char === '/') at = slash();
    else if (char === "'" || char === '"') at = quoted(endOfString(source, at));
    else if (char === '`') at = templateText(at + 1);
    else if (char === '{' || char === '}') at = brace(char);
    else at = wordOrMark();
  }
  return out.join('');
}
