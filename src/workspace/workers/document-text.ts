import type { DocumentFormat } from '../read-file.ts';

/** The text of a document, or how many characters it has at least where that is beyond the limit, or why there is none. */
export type DocumentText = { text: string } | { tooLong: number } | { problem: string };

/** Reads a document. The parsers are loaded with the first one. */
export async function documentText(
  format: DocumentFormat,
  bytes: Uint8Array,
  maxChars = Number.POSITIVE_INFINITY,
): Promise<DocumentText> {
  try {
    const text = format === 'pdf' ? await pdfText(bytes) : await officeText(format, bytes, maxChars);
    assertShort(text, maxChars);
    if (/\S/.test(text.replace(partTitle, ''))) return { text };
    return { problem: 'It has no text; its pages may be scans.' };
  } catch (error) {
    if (error instanceof TooLong) return { tooLong: error.length };
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    if (name === 'PasswordException') return { problem: 'It is protected by a password.' };
    return { problem: `It cannot be read as ${format.toUpperCase()} (${message}).` };
  }
}

class TooLong extends Error {
  length = 0;
}

function assertShort({ length }: Pick<string, 'length'>, maxChars: number): void {
  if (length > maxChars) throw Object.assign(new TooLong(), { length });
}

/** Heads a page, slide or sheet; the files' outlines know it for a heading. */
const titleOf = (what: string) => `=== ${what} ===`;

const partTitle = /^=== .* ===$/gm;

/** Books have fewer; a small file may claim millions. */
const maxPages = 20_000;

async function pdfText(bytes: Uint8Array): Promise<string> {
  const { getDocumentProxy } = await import('unpdf');
  // Warnings of the parser would be written to the output, where a protocol is spoken.
  const pdf = await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 });
  if (pdf.numPages > maxPages) throw new Error(`it has more than ${maxPages} pages`);
  const pages: string[] = [];
  // One after the other: what the parser keeps of a page is given back before the next.
  for (let number = 1; number <= pdf.numPages; number++) {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    const text = items.map(item => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join('');
    pages.push(`${titleOf(`Page ${number}`)}\n${text.trim()}`);
    page.cleanup();
  }
  await pdf.loadingTask.destroy();
  return pages.join('\n\n');
}

/** Of all parts of a document together, unpacked: what grows beyond that is made to. */
const maxUnpacked = 256 * 1024 * 1024;

/** The parts of an Office document by their names. */
type Parts = Readonly<Record<string, string>>;

async function officeText(format: Exclude<DocumentFormat, 'pdf'>, bytes: Uint8Array, maxChars: number) {
  const { strFromU8, unzipSync } = await import('fflate');
  let unpacked = 0;
  const files = unzipSync(bytes, {
    filter: ({ name, originalSize }) => {
      if (!/\.(?:xml|rels)$/.test(name)) return false;
      unpacked += originalSize;
      if (unpacked > maxUnpacked) throw new Error(`it unpacks to more than ${maxUnpacked} bytes`);
      return true;
    },
  });
  const parts = Object.fromEntries(Object.entries(files).map(([name, data]) => [name, strFromU8(data)]));
  return { xlsx: sheetsText, pptx: slidesText, docx: wordText }[format](parts, maxChars);
}

function wordText(parts: Parts): string {
  const main = parts['word/document.xml'];
  if (main === undefined) throw new Error('it has no main part');
  const notes = ['footnotes', 'endnotes', 'comments'].map(name => flowText(parts[`word/${name}.xml`]));
  return [flowText(main), ...notes.filter(Boolean)].join('\n\n');
}

function slidesText(parts: Parts): string {
  const numbers = Object.keys(parts).flatMap(name => Number(/^ppt\/slides\/slide(\d+)\.xml$/.exec(name)?.[1]) || []);
  return numbers
    .sort((a, b) => a - b)
    .map(number => {
      const texts = ['slides/slide', 'notesSlides/notesSlide'].map(name => flowText(parts[`ppt/${name}${number}.xml`]));
      return [titleOf(`Slide ${number}`), ...texts.filter(Boolean)].join('\n');
    })
    .join('\n\n');
}

/** Tags by their names without prefix, and what stands between them. A tag holds no `<`: each is looked for up to the next one. */
const markup = /<(\/?)(?:\w+:)?(\w+)(?!\w)((?:"[^"<]*"|'[^'<]*'|[^<>"'])*?)(\/?)>|([^<]+)/g;
const headingStyle = /"(?:heading|berschrift|titre|titolo|t.tulo|kop)\s?(\d)"/i;

/** Running text: a line for each paragraph and each row of a table, whose cells are apart by tabs. */
function flowText(xml = ''): string {
  const lines: string[] = [];
  let line = '';
  const open = { t: false, r: false, tc: false, Fallback: false };
  for (const [, close, name = '', attributes = '', empty, text] of xml.matchAll(markup)) {
    const opens = !close && !empty;
    const ends = name === 'br' || (close && (name === 'tr' || (name === 'p' && !open.tc)));
    if (text !== undefined) line += open.t && !open.Fallback ? withoutEntities(text) : '';
    else if (name === 't' || name === 'r' || name === 'tc' || name === 'Fallback') open[name] = opens;
    else if (name === 'pStyle') line += '#'.repeat(Number(headingStyle.exec(attributes)?.[1] ?? 0));
    else if (name === 'tab' && open.r) line += '\t';
    else if (name === 'p' && close && open.tc) line += ' ';
    if (name === 'pStyle' && line.endsWith('#')) line += ' ';
    if (name === 'tc' && close) line = `${line.trimEnd()}\t`;
    if (ends) {
      lines.push(line.trimEnd());
      line = '';
    }
  }
  return [...lines, line.trimEnd()]
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

const entities = new Map(Object.entries({ lt: '<', gt: '>', amp: '&', quot: '"', apos: "'", nbsp: ' ' }));

/** A text of XML or HTML as a reader sees it. */
export const withoutEntities = (text: string): string =>
  text.replace(/&(?:#x([\da-f]{1,6})|#(\d{1,7})|(\w+));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return entities.get(name) ?? whole;
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : '';
  });

function attribute(name: string, attributes: string): string | undefined {
  const value = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1];
  return value === undefined ? undefined : withoutEntities(value);
}

type XmlElement = Record<'attributes' | 'content', string>;

/** Attributes and content of all elements of a name that do not stand in each other. */
function elements(name: string, xml = ''): XmlElement[] {
  const tag = `(?:\\w+:)?${name}`;
  // None holds another of its name: each is looked for up to the next one.
  const inside = `((?:(?!<${tag}[\\s/>])[\\s\\S])*?)`;
  const pattern = new RegExp(`<${tag}(?=[\\s/>])([^<>]*?)(?:/>|>${inside}</${tag}>)`, 'g');
  return [...xml.matchAll(pattern)].map(([, attributes = '', content = '']) => ({ attributes, content }));
}

/** Each sheet with its name, a line for each row: its number, and its cells apart by tabs. */
function sheetsText(parts: Parts, maxChars: number): string {
  const workbook = parts['xl/workbook.xml'] ?? '';
  const targets = new Map(
    elements('Relationship', parts['xl/_rels/workbook.xml.rels']).map(({ attributes }) => [
      attribute('Id', attributes),
      (attribute('Target', attributes) ?? '').replace(/^\/?(?:xl\/)?/, 'xl/'),
    ]),
  );
  const shared = elements('si', parts['xl/sharedStrings.xml']).map(({ content }) => stringIn(content, maxChars));
  const cells: CellFormats = {
    shared,
    room: { maxChars, taken: 0 },
    dated: datedStyles(parts['xl/styles.xml']),
    // Serial numbers count days from the year 1900, or in old files of the Macintosh from 1904.
    epoch: Date.UTC(1899, 11, /date1904="(?:1|true)"/.test(workbook) ? 30 + 1_462 : 30),
  };
  return elements('sheet', workbook)
    .map(({ attributes }) => {
      const xml = parts[targets.get(attribute('r:id', attributes)) ?? ''] ?? '';
      return [titleOf(`Sheet ${attribute('name', attributes) ?? ''}`), ...rowsOf(xml, cells)].join('\n');
    })
    .join('\n\n');
}

interface CellFormats {
  shared: readonly string[];
  /** A string that many cells name is kept once: it may become far more text than it was bytes. */
  room: { maxChars: number; taken: number };
  /** Which styles of cells show a date. */
  dated: readonly boolean[];
  /** Milliseconds of day 0. */
  epoch: number;
}

/** Phonetic guides repeat what stands there. */
function stringIn(xml: string, maxChars: number): string {
  const own = xml.replace(/<(?:\w+:)?rPh\b(?:(?!<(?:\w+:)?rPh\b)[\s\S])*?<\/(?:\w+:)?rPh>/g, '');
  const texts = elements('t', own).map(({ content }) => content);
  const text = withoutEntities(texts.join(''));
  assertShort(text, maxChars);
  return text.replace(/\s+/g, ' ');
}

function datedStyles(xml: string | undefined): boolean[] {
  const codes = new Map(
    elements('numFmt', xml).map(({ attributes }) => [
      Number(attribute('numFmtId', attributes)),
      (attribute('formatCode', attributes) ?? '').replace(/"[^"]*"|\[[^[\]]*\]|\\./g, ''),
    ]),
  );
  const [used] = elements('cellXfs', xml);
  return elements('xf', used?.content).map(({ attributes }) => {
    const id = Number(attribute('numFmtId', attributes));
    return (id >= 14 && id <= 22) || (id >= 45 && id <= 47) || /[dmyhs]/i.test(codes.get(id) ?? '');
  });
}

/** A gap of more empty cells than this is not shown. */
const maxGap = 64;

const rowsOf = (xml: string, formats: CellFormats): string[] =>
  elements('row', xml).flatMap(({ attributes, content }, index) => {
    const shown: string[] = [];
    const { maxChars, taken } = formats.room;
    for (const cell of elements('c', content)) {
      const column = columnOf(attribute('r', cell.attributes) ?? '');
      for (let gap = 0; shown.length < column && gap < maxGap; gap++) shown.push('');
      const text = cellText(cell, formats);
      shown.push(text);
      formats.room.taken += text.length;
      assertShort({ length: formats.room.taken }, maxChars);
    }
    const line = shown.join('\t').trimEnd();
    // With the gaps: a few cells make a long line.
    formats.room.taken = taken + line.length;
    return line === '' ? [] : [`${attribute('r', attributes) ?? index + 1}: ${line}`];
  });

/** `C7` is in column 2. */
function columnOf(reference: string): number {
  let column = 0;
  for (const letter of /^[A-Z]{1,3}/.exec(reference)?.[0] ?? '') column = column * 26 + letter.charCodeAt(0) - 64;
  return column - 1;
}

function cellText({ attributes, content }: XmlElement, { shared, room, dated, epoch }: CellFormats): string {
  const type = attribute('t', attributes);
  const value = elements('v', content)[0]?.content ?? '';
  if (type === 's') return shared[Number(value)] ?? '';
  if (type === 'inlineStr') return stringIn(content, room.maxChars);
  if (type === 'b') return value === '1' ? 'TRUE' : 'FALSE';
  const days = Number(value);
  if (type !== undefined && type !== 'n') return withoutEntities(value);
  if (value === '' || !dated[Number(attribute('s', attributes) ?? -1)] || !(days > 0 && days < 2_958_466)) return value;
  const date = new Date(Math.round((epoch + days * 86_400_000) / 1_000) * 1_000).toISOString();
  return days < 1 ? date.slice(11, 19) : days % 1 === 0 ? date.slice(0, 10) : date.slice(0, 19).replace('T', ' ');
}
