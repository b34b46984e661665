import { constants, deflateRawSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { documentFormat } from '../../../src/workspace/read-file.ts';
import { documentText } from '../../../src/workspace/workers/document-text.ts';
import { createPool } from '../../../src/workspace/workers/worker-pool.ts';
import { manualClock, realClock } from '../../support/clock.ts';
import { paragraph, pdfFile, sheetFile, slideFile, textCell, wordFile } from '../../support/office-files.ts';
import { ownTime } from '../../support/own-time.ts';

const textOf = async (...asked: Parameters<typeof documentText>) => {
  const read = await documentText(...asked);
  return 'text' in read ? read.text : read;
};

describe('the text of a PDF', () => {
  it('is told page by page, line by line', async () => {
    const pdf = pdfFile('Orders rose.\nBy 12 percent (net).', 'The end.');
    expect(await textOf('pdf', pdf)).toBe(
      '=== Page 1 ===\nOrders rose.\nBy 12 percent (net).\n\n=== Page 2 ===\nThe end.',
    );
  });

  it('is missing where pages are pictures, and where it is none', async () => {
    expect(await documentText('pdf', pdfFile('', ''))).toMatchObject({ problem: expect.stringContaining('scans') });
    expect(await documentText('pdf', pdfFile(...Array<string>(20_001).fill('')))).toMatchObject({
      problem: 'It cannot be read as PDF (it has more than 20000 pages).',
    });
    expect(await documentText('pdf', Buffer.from('%PDF-1.7\nAlpha\0'))).toMatchObject({
      problem: expect.stringContaining('cannot be read as PDF'),
    });
  });
});

describe('documents that are made to be slow to read', () => {
  const cells = ['<c r="A1" s="0"><v>1</v></c>'];
  const styles = (code: string) =>
    `<numFmts><numFmt numFmtId="170" formatCode="${code}"/></numFmts><cellXfs><xf numFmtId="170"/></cellXfs>`;
  it.each<[string, 'docx' | 'xlsx', Buffer]>([
    ['a name without end', 'docx', wordFile(`<0${'0'.repeat(200_000)}'>`)],
    ['tags without end', 'docx', wordFile('<a '.repeat(100_000))],
    ['quotes without end', 'docx', wordFile(`<a "'`.repeat(100_000))],
    ['rows without end', 'xlsx', sheetFile({ A: ['<row r="1">'.repeat(30_000)] })],
    ['cells without end', 'xlsx', sheetFile({ A: ['<c '.repeat(100_000)] })],
    ['guides without end', 'xlsx', sheetFile({ A: [`<c t="inlineStr"><is>${'<rPh '.repeat(60_000)}</is></c>`] })],
    ['brackets without end', 'xlsx', sheetFile({ A: cells }, { formats: styles('['.repeat(200_000)) })],
  ])('are read in time by their length: %s', async (_, format, bytes) => {
    const before = ownTime();
    await documentText(format, bytes);
    expect(ownTime() - before).toBeLessThan(2_000);
  });
});

describe('the text of a Word document', () => {
  it('has headings, rows of tables, breaks and notes, and nothing twice', async () => {
    const cell = (text: string) => `<w:tc>${paragraph(text)}</w:tc>`;
    const box = '<mc:Choice><w:t>Boxed</w:t></mc:Choice><mc:Fallback><w:t>Boxed</w:t></mc:Fallback>';
    const word = wordFile(
      [
        paragraph('Retention', 'Heading2'),
        paragraph('Kept for <7> years & a day.'),
        `<w:tbl><w:tr>${cell('Item')}${cell('Price')}</w:tr><w:tr>${cell('Nut')}${cell('3')}</w:tr></w:tbl>`,
        '<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t><w:br/><w:t>&#x2713;</w:t></w:r></w:p>',
        `<w:p><w:r><mc:AlternateContent>${box}</mc:AlternateContent></w:r></w:p>`,
        '<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>',
      ].join(''),
      { 'word/footnotes.xml': `<w:footnotes>${paragraph('See page 9.')}</w:footnotes>` },
    );
    expect(await textOf('docx', word)).toBe(
      '## Retention\nKept for <7> years & a day.\nItem\tPrice\nNut\t3\none\ttwo\n✓\nBoxed\n\nSee page 9.',
    );
  });

  it('is missing where the archive is none, and where it unpacks to more than there is room for', async () => {
    expect(await documentText('docx', Buffer.from('PK'))).toMatchObject({ problem: expect.stringContaining('DOCX') });
    // What the archive says of a part: 300 MB.
    const bomb = wordFile('');
    bomb.writeUInt32LE(300 * 1024 * 1024, bomb.indexOf('PK\x01\x02', 0, 'latin1') + 24);
    expect(await documentText('docx', bomb)).toMatchObject({ problem: expect.stringContaining('unpacks to more') });
  });
});

it('takes no longer for long runs of spaces and many headings', async () => {
  const many = paragraph('One of many', 'Heading1').repeat(20_000);
  const read = await textOf('docx', wordFile(`${paragraph(`a${' '.repeat(1_000_000)}b`)}${many}`));
  expect(read).toHaveLength(1_000_002 + 20_000 * '\n# One of many'.length);
});

it('has only its length where it is longer than what is taken', async () => {
  // A string that many cells name is kept once.
  const cells = '<c t="s"><v>0</v></c>'.repeat(1_000);
  const book = sheetFile({ A: [cells] }, { strings: ['y'.repeat(100_000)] });
  expect(await documentText('xlsx', book, 1_000_000)).toEqual({ tooLong: expect.any(Number) });
});

it('of a workbook is refused before it is made, where it is longer', async () => {
  // 4 GB, for which no string has room; and a string that would take half a minute.
  const often = sheetFile({ A: ['<c t="s"><v>0</v></c>'.repeat(2_000)] }, { strings: ['y'.repeat(2_000_000)] });
  expect(await documentText('xlsx', often, 10_000_000)).toEqual({ tooLong: 12_000_000 });
  const one = sheetFile({ A: ['<c t="s"><v>0</v></c>'] }, { strings: ['y '.repeat(20_000_000)] });
  const began = ownTime();
  expect(await documentText('xlsx', one, 10_000_000)).toEqual({ tooLong: expect.any(Number) });
  expect(ownTime() - began).toBeLessThan(4_000);
  // Lines of 18,000 tabs.
  const gaps = sheetFile({ A: Array<string>(1_000).fill(`${'<c r="ZZZ"/>'.repeat(285)}<c><v>1</v></c>`) });
  const { tooLong } = Object(await documentText('xlsx', gaps, 1_000_000));
  expect(tooLong).toBeLessThan(1_100_000);
});

it('of a workbook is measured without its markup', async () => {
  const runs = `<c t="inlineStr"><is>${'<r><rPr><b/></rPr><t>a</t></r>'.repeat(1_000)}</is></c>`;
  expect(await textOf('xlsx', sheetFile({ A: [runs] }), 2_000)).toContain('1: aaa');
});

describe('the text of a workbook', () => {
  it('names its sheets and rows, and shows strings, numbers, dates and gaps', async () => {
    const formats =
      '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/><numFmt numFmtId="165" formatCode="0.0&quot; days&quot;"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="22"/><xf numFmtId="165"/></cellXfs></styleSheet>';
    const book = sheetFile(
      {
        'Sales & more': [
          '<c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c>',
          '<c r="A2" s="1"><v>45992</v></c><c r="C2"><v>12.5</v></c><c r="D2" t="b"><v>1</v></c>',
          '<c r="A3" s="2"><v>45992.75</v></c><c r="B3" s="3"><v>4</v></c><c r="C3" t="e"><v>#DIV/0!</v></c>',
          '',
        ],
        Notes: [textCell('A1', 'Nothing else')],
      },
      { strings: ['Day', 'Sum'], formats },
    );
    expect(await textOf('xlsx', book)).toBe(
      [
        '=== Sheet Sales & more ===',
        '1: Day\t\tSum',
        '2: 2025-12-01\t\t12.5\tTRUE',
        '3: 2025-12-01 18:00:00\t4\t#DIV/0!',
        '',
        '=== Sheet Notes ===',
        '1: Nothing else',
      ].join('\n'),
    );
  });
});

it('reads slides in their order', async () => {
  const slides = Array.from({ length: 11 }, (_, n) => `Point ${n + 1}`);
  expect(await textOf('pptx', slideFile(...slides))).toMatch(/Slide 2 ===\nPoint 2[\s\S]*Slide 11 ===\nPoint 11$/);
});

it('knows documents by their names', () => {
  expect(['a.PDF', 'b.docm', 'c.xlsx', 'd.txt', 'pdf', 'e.constructor'].map(documentFormat)).toEqual([
    'pdf',
    'docx',
    'xlsx',
    undefined,
    undefined,
    undefined,
  ]);
});

describe('a thread', () => {
  const clock = manualClock();
  const pool = createPool({ size: 1, clock });
  afterAll(() => pool.close());

  it('reads a document', async () => {
    expect(await pool.document({ format: 'pdf', bytes: pdfFile('Hello.') })).toEqual({
      text: '=== Page 1 ===\nHello.',
    });
  });

  it('is ended where one takes more than a minute, for which no other work waits', async () => {
    const reading = pool.document({ format: 'docx', bytes: wordFile('<w:tc><w:t>a</w:t></w:tc>'.repeat(500_000)) });
    const failed = expect(reading).rejects.toMatchObject({ kind: 'limit', message: expect.stringContaining('60 s') });
    const next = pool.document({ format: 'pdf', bytes: pdfFile('Hello.') });
    expect(await pool.count(['Hello.'])).toBeGreaterThan(0);
    await clock.advance(60_000);
    await failed;
    expect(await next).toMatchObject({ text: expect.stringContaining('Hello.') });
  });

  it('is ended where one unpacks to more than there is memory for', async () => {
    const zeros = deflateRawSync(Buffer.alloc(32 * 1024 * 1024), { finishFlush: constants.Z_FULL_FLUSH });
    const packed = Buffer.concat([Buffer.from([0x78, 0x9c]), ...Array.from({ length: 64 }, () => zeros)]);
    const bomb = pdfFile('STREAM')
      .toString('latin1')
      .replace(/<< \/Length \d+ >>\nstream\n[\s\S]*?\nendstream/, () => {
        return `<< /Length ${packed.length} /Filter /FlateDecode >>\nstream\n${packed.toString('latin1')}\nendstream`;
      });
    const real = createPool({ size: 1, clock: realClock() });
    const began = performance.now();
    const failure = await real.document({ format: 'pdf', bytes: Buffer.from(bomb, 'latin1') }).catch(error => error);
    // Where memory comes slowly, the limit of a minute may be reached before that of memory.
    const limits = performance.now() - began < 59_000 ? /of memory/ : /of memory|more than 60 s/;
    expect(failure).toMatchObject({ kind: 'limit', message: expect.stringMatching(limits) });
    await real.close();
  }, 120_000);
});
