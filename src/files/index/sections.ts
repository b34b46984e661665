import type { LineRange } from '../../core/file.ts';

/** A part of a text that belongs together. */
export interface Section extends LineRange {
  /** Its heading or first line. */
  title: string;
  /** Its lines, the first of which is number `from`. */
  lines: readonly string[];
}

const heading = /^(?:#{1,6}\s+\S|={3,}[^=]+={3,}\s*$|\d+(?:\.\d+)*\.?\s+\p{Lu})/u;
const fence = /^\s*(?:```|~~~)/;
/** A section that is longer is cut at an empty line. */
const longest = 120;
const shortest = 5;

/** Cuts a text at its headings, and at empty lines where there are none for long. */
export function sectionsOf(text: string): Section[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const sections: Section[] = [];
  let start = 0;
  let fenced = false;
  const close = (end: number) => {
    const own = lines.slice(start, end);
    const title = own.find(line => line.trim() !== '')?.trim() ?? '';
    if (title !== '') sections.push({ from: start + 1, to: end, title, lines: own });
    start = end;
  };
  for (const [index, line] of lines.entries()) {
    if (fence.test(line)) fenced = !fenced;
    const length = index - start;
    const atHeading = !fenced && heading.test(line) && length > 0;
    const atGap = length >= longest / 2 && line.trim() === '';
    if (atHeading || atGap || length >= longest) close(index);
  }
  close(lines.length);
  return joined(sections);
}

/** A heading alone is no section: it goes with what follows. */
function joined(sections: readonly Section[]): Section[] {
  const out: Section[] = [];
  for (const section of sections) {
    const last = out.at(-1);
    if (last && last.lines.length < shortest && last.to + 1 === section.from) {
      out[out.length - 1] = { ...last, to: section.to, lines: [...last.lines, ...section.lines] };
    } else out.push(section);
  }
  return out;
}
