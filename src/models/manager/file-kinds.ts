/** A file's name without the range that may follow it, in lower case. */
function plainName(path: string): string {
  return path
    .trim()
    .toLowerCase()
    .replace(/:\d+(?:-\d+)?$/, '');
}

function extensionOf(path: string): string {
  const name = plainName(path).split(/[\\/]/).at(-1) ?? '';
  const dot = name.lastIndexOf('.');
  return dot === -1 ? '' : name.slice(dot + 1);
}

/** What has to be extracted before a model can read it. */
const documents = new Set(
  'pdf doc docx docm dotx odt rtf pages xls xlsx xlsm xlsb ods numbers ppt pptx pptm ppsx odp key epub mobi djvu xps tif tiff'.split(
    ' ',
  ),
);
const pictures = new Set('png jpg jpeg webp gif bmp heic heif'.split(' '));
const sources = new Set(
  (
    'ts tsx mts cts js jsx mjs cjs py pyi go rs java kt kts scala c h cc cpp cxx hpp cs fs swift m mm rb php pl lua r jl dart ' +
    'ex exs erl hs clj elm ml vue svelte sql sh bash zsh ps1 css scss less html xml gradle tf proto graphql sol zig nim'
  ).split(' '),
);

const pageWord =
  /scan|receipt|invoice|letter|contract|form\b|page|handwrit|\bocr\b|transcri|document|extract|rechnung|quittung|vertrag|beleg|facture|reçu|contrat|扫描|发票|收据|合同|识别|文字/i;

/** Whether a picture shows text that is to be read, by its name or by what is asked. */
function isPage(path: string, text: string): boolean {
  return pictures.has(extensionOf(path)) && (pageWord.test(plainName(path)) || pageWord.test(text));
}

/** The named files that are documents: PDF, office formats, pictures of text. */
export function documentsAmong(files: readonly string[], text: string): string[] {
  return files.filter(path => documents.has(extensionOf(path)) || isPage(path, text));
}

/** The named files that are pictures to look at. */
export function picturesAmong(files: readonly string[], text: string): string[] {
  return files.filter(path => pictures.has(extensionOf(path)) && !isPage(path, text));
}

export function sourcesAmong(files: readonly string[]): string[] {
  return files.filter(path => sources.has(extensionOf(path)));
}
