/** One place of a name: a character, any (`?`), any number of them (`*`), or one of a class. */
type Piece = { star: true } | { star: false; fits(char: string): boolean; dot: boolean };

const mostAlternatives = 64;

/**
 * Tells paths with `/` that fit a pattern of `*`, `**`, `?`, `[a-z]` and `{a,b}`; names that begin with a dot have to be named so.
 * No pattern and no name makes it slow: the work grows with the product of their lengths at most. Undefined: too many alternatives.
 */
export function globMatcher(glob: string): ((path: string) => boolean) | undefined {
  const globs = alternatives(glob.replaceAll('\\', '/'));
  if (globs === undefined) return undefined;
  const compiled = globs.map(one => {
    const names = one.split('/');
    // Something has to be there below the folder.
    const whole = names.at(-1) === '**' ? [...names, '*'] : names;
    return whole.map(name => (name === '**' ? '**' : piecesOf(name)));
  });
  return path => {
    const names = path.split('/');
    return compiled.some(steps => fitsPath(steps, names));
  };
}

function alternatives(glob: string): string[] | undefined {
  let globs = [glob];
  for (;;) {
    if (globs.length > mostAlternatives) return undefined;
    const next = globs.flatMap(one => {
      const found = /\{([^{}]*,[^{}]*)\}/.exec(one);
      const [whole = '', inner = ''] = found ?? [];
      if (!found) return [one];
      return inner.split(',').map(each => one.slice(0, found.index) + each + one.slice(found.index + whole.length));
    });
    if (next.length === globs.length && next.every((one, index) => one === globs[index])) return globs;
    globs = next;
  }
}

function piecesOf(name: string): Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at < name.length; at++) {
    const char = name.charAt(at);
    const end = char === '[' ? name.indexOf(']', at + (/^[!^]/.test(name.slice(at + 1)) ? 3 : 2)) : -1;
    if (char === '*') {
      const before = pieces.at(-1);
      if (!before?.star) pieces.push({ star: true });
    } else if (char === '?') pieces.push({ star: false, fits: () => true, dot: false });
    else if (end !== -1) {
      pieces.push({ star: false, fits: classOf(name.slice(at + 1, end)), dot: false });
      at = end;
    } else pieces.push({ star: false, fits: other => other === char, dot: char === '.' });
  }
  return pieces;
}

function classOf(body: string): (char: string) => boolean {
  const not = /^[!^]/.test(body);
  const chars = not ? body.slice(1) : body;
  const ranges: [string, string][] = [];
  for (let at = 0; at < chars.length; at++) {
    const from = chars.charAt(at);
    const isRange = chars.charAt(at + 1) === '-' && at + 2 < chars.length;
    ranges.push([from, isRange ? chars.charAt(at + 2) : from]);
    if (isRange) at += 2;
  }
  return char => ranges.some(([from, to]) => from <= char && char <= to) !== not;
}

/** Where in the path each step may begin: `**` lets it begin at every name from there on that has no dot before it. */
function fitsPath(steps: readonly (readonly Piece[] | '**')[], names: readonly string[]): boolean {
  let reached = names.map(() => false);
  reached = [true, ...reached];
  for (const step of steps) {
    const next = reached.map(() => false);
    for (const [at, name] of [...names, undefined].entries()) {
      if (step === '**') {
        const before = names[at - 1];
        next[at] = reached[at] === true || (next[at - 1] === true && before?.startsWith('.') === false);
      } else if (reached[at] && name !== undefined) next[at + 1] = fitsName(step, name);
    }
    reached = next;
  }
  return reached.at(-1) === true;
}

/** Only the last `*` is ever tried again: what those before it took is as good as anything else. */
function fitsName(pieces: readonly Piece[], name: string): boolean {
  const [first] = pieces;
  if (name.startsWith('.') && (first?.star || first?.dot === false)) return false;
  let piece = 0;
  let star = -1;
  let from = 0;
  for (let at = 0; at < name.length; ) {
    const wanted = pieces[piece];
    if (wanted?.star) {
      star = piece++;
      from = at;
    } else if (wanted?.fits(name.charAt(at))) {
      piece++;
      at++;
    } else if (star !== -1) {
      piece = star + 1;
      at = ++from;
    } else return false;
  }
  while (pieces[piece]?.star) piece++;
  return piece === pieces.length;
}
