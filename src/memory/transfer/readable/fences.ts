/** A stretch of Markdown: running text, or the inside of a fenced block of code. */
export interface Stretch {
  /** The word behind the opening fence; absent for running text. */
  language?: string;
  text: string;
}

const opening = /^ {0,3}(`{3,}|~{3,})/;

/** The fence that a line opens, and the word behind it. Each sign is looked at once: lines may be as long as anybody likes. */
function openingIn(line: string): { fence: string; language: string } | undefined {
  const [begin = '', fence] = opening.exec(line) ?? [];
  if (fence === undefined) return undefined;
  const info = line.slice(begin.length);
  // Backticks behind backticks are code within a line.
  if (fence.startsWith('`') && info.includes('`')) return undefined;
  return { fence, language: info.trim().split(/\s/, 1)[0] ?? '' };
}

/** Takes fenced code out of Markdown. A fence that nobody closed goes to the end. */
export function splitFences(markdown: string): Stretch[] {
  const found: Stretch[] = [];
  let lines: string[] = [];
  let open: { fence: string; language: string } | undefined;
  const close = () => {
    const text = lines.join('\n');
    if (open) found.push({ language: open.language, text });
    else if (text.trim() !== '') found.push({ text });
    lines = [];
  };
  for (const line of markdown.split('\n')) {
    const begun = open ? undefined : openingIn(line);
    if (begun) {
      close();
      open = begun;
    } else if (open && closes(line, open.fence)) {
      close();
      open = undefined;
    } else {
      lines.push(line);
    }
  }
  if (open || lines.length > 0) close();
  return found;
}

function closes(line: string, fence: string): boolean {
  const bare = line.trim();
  return bare.length >= fence.length && bare === fence.charAt(0).repeat(bare.length) && /^ {0,3}\S/.test(line);
}

/** A block of code that nothing in `text` can end: its fence is longer than any in it. */
export function fenced(text: string, language = ''): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language.replace(/[^\w+#.-]/g, '').slice(0, 30)}\n${text.endsWith('\n') || text === '' ? text : `${text}\n`}${fence}`;
}
