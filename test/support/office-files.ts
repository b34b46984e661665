import { strToU8, zipSync } from 'fflate';

const xmlHead = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';

/** Not compressed, so that a fake that keeps a file finds its words. */
function zipped(parts: Record<string, string>): Buffer {
  const files = Object.entries(parts).map(([name, text]) => [name, strToU8(text)] as const);
  return Buffer.from(zipSync(Object.fromEntries(files), { level: 0 }));
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** A PDF with a page for each text. */
export function pdfFile(...pages: string[]): Buffer {
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${pages.map((_, n) => `${4 + n * 2} 0 R`).join(' ')}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ];
  for (const [n, text] of pages.entries()) {
    const lines = text.split('\n').map(line => `(${line.replace(/[()\\]/g, '\\$&')}) Tj T*`);
    const stream = `BT /F1 12 Tf 14 TL 72 720 Td ${lines.join(' ')} ET`;
    const font = '/Resources << /Font << /F1 3 0 R >> >>';
    objects.push(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] ${font} /Contents ${5 + n * 2} 0 R >>`);
    objects.push(`<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`);
  }
  let body = '%PDF-1.7\n';
  const offsets = objects.map((object, n) => {
    const at = body.length;
    body += `${n + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(at).padStart(10, '0')} 00000 n \n`;
  });
  const xref = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`;
  return Buffer.from(
    `${body}${xref}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${body.length}\n%%EOF`,
  );
}

/** A Word document of this body, in WordprocessingML. */
export function wordFile(body: string, more: Record<string, string> = {}): Buffer {
  const space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
  return zipped({
    'word/document.xml': `${xmlHead}<w:document ${space}><w:body>${body}</w:body></w:document>`,
    ...more,
  });
}

export const paragraph = (text: string, style = '') =>
  `<w:p><w:pPr>${style && `<w:pStyle w:val="${style}"/>`}<w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:t xml:space="preserve">${escaped(text)}</w:t></w:r></w:p>`;

/** A workbook of sheets whose rows are given as XML of cells. */
export function sheetFile(
  sheets: Record<string, string[]>,
  { strings = [], formats = '' }: { strings?: string[]; formats?: string } = {},
): Buffer {
  const names = Object.keys(sheets);
  const rows = (cells: string[]) => cells.map((row, n) => `<row r="${n + 1}">${row}</row>`).join('');
  return zipped({
    'xl/workbook.xml': `${xmlHead}<workbook xmlns:r="r"><sheets>${names.map((name, n) => `<sheet name="${escaped(name)}" sheetId="${n + 1}" r:id="rId${n + 1}"/>`).join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': `<Relationships>${names.map((_, n) => `<Relationship Id="rId${n + 1}" Target="worksheets/sheet${n + 1}.xml"/>`).join('')}</Relationships>`,
    'xl/sharedStrings.xml': `<sst>${strings.map(text => `<si><t>${escaped(text)}</t></si>`).join('')}</sst>`,
    'xl/styles.xml': formats,
    ...Object.fromEntries(
      Object.values(sheets).map((cells, n) => [
        `xl/worksheets/sheet${n + 1}.xml`,
        `${xmlHead}<worksheet><sheetData>${rows(cells)}</sheetData></worksheet>`,
      ]),
    ),
  });
}

export const textCell = (at: string, text: string) => `<c r="${at}" t="inlineStr"><is><t>${escaped(text)}</t></is></c>`;

/** A presentation with a slide for each text. */
export function slideFile(...slides: string[]): Buffer {
  const slide = (text: string) =>
    `<p:sld xmlns:a="a" xmlns:p="p"><a:p><a:r><a:t>${escaped(text)}</a:t></a:r></a:p></p:sld>`;
  return zipped(Object.fromEntries(slides.map((text, n) => [`ppt/slides/slide${n + 1}.xml`, slide(text)])));
}
