import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

// Writes docs/images/demo.svg, the moving picture of README.md: what `polylogue demo` really printed, at a pace that can be read.
// npm run picture

const root = join(import.meta.dirname, '..', '..');
const width = 880;
const lineHeight = 20;
const top = 62;
/** Seconds after which a line follows the one before it: after a blank one a part of the demo begins. */
const pace = { line: 0.35, part: 1.1, end: 6 };

/** The lines that the demo prints. IDs differ from run to run, so one is shown. */
function printedLines(): string[] {
  const { stdout, status } = spawnSync(process.execPath, [join(root, 'dist/main.js'), 'demo'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`polylogue demo ended with ${status}`);
  return stdout
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '92e7a1c4-…')
    .trim()
    .split('\n');
}

const escaped = (text: string): string => text.replace(/[&<>]/g, sign => `&#${sign.charCodeAt(0)};`);

/** An SVG in which each line appears at its time; whoever asked for no motion sees all of them. */
export function terminalSvg(lines: readonly string[] = printedLines()): string {
  let at = 0.6;
  const shown = lines.map((line, index) => {
    at += lines[index - 1]?.trim() === '' ? pace.part : pace.line;
    return { line, at };
  });
  const all = at + pace.end;
  const seen = shown.flatMap(({ line, at }, index) => (line.trim() === '' ? [] : [{ line, at, index }]));
  const texts = seen.map(({ line, index }) => {
    const kind = line.startsWith(' ') ? 'out' : 'head';
    return `<text id="l${index}" class="${kind}" x="24" y="${top + (index + 2) * lineHeight}">${escaped(line)}</text>`;
  });
  // Hidden from the start of a round to its time, then shown to the end of the round.
  const times = seen.map(({ at, index }) => {
    const percent = ((at / all) * 100).toFixed(1);
    return `#l${index} { animation: l${index} ${all.toFixed(1)}s step-end infinite } @keyframes l${index} { 0% { opacity: 0 } ${percent}% { opacity: 1 } }`;
  });
  const height = top + (lines.length + 2) * lineHeight;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="polylogue demo in a terminal: a thread survives a restart and continues with another vendor's model">
<style>
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; fill: #c9d1d9 }
.prompt { fill: #7ee787 } .head { fill: #79c0ff; font-weight: 600 }
@media (prefers-reduced-motion: no-preference) {
${times.join('\n')}
}
</style>
<rect width="${width}" height="${height}" rx="10" fill="#0d1117"/>
<circle cx="24" cy="22" r="6" fill="#ff5f56"/><circle cx="44" cy="22" r="6" fill="#ffbd2e"/><circle cx="64" cy="22" r="6" fill="#27c93f"/>
<text class="prompt" x="24" y="${top}">$ polylogue demo</text>
${texts.join('\n')}
</svg>
`;
}

if (import.meta.main) {
  const file = join(root, 'docs/images/demo.svg');
  writeFileSync(file, terminalSvg());
  console.log(`wrote ${file}`);
}
