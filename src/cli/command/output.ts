import { once } from 'node:events';
import { styleText } from 'node:util';
import { type JsonObject, recordIn } from '../../core/json.ts';
import { createPrintable, printableJson, printableText } from '../../core/text.ts';

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

/** Text in a color of this program. Only this way does a control code reach a terminal. */
export interface Styled {
  style: Style;
  text: string;
}

type Piece = string | Styled;

export type Output = ReturnType<typeof createOutput>;

/** Columns that rendered text takes at most. */
const maxWidth = 120;

const clearLine = '\r\u001b[2K';

/**
 * Where a command says things: results on stdout, remarks for a person on stderr. All text is taken for a stranger's: what
 * would steer a terminal is shown instead of sent, on a pipe as well, since `less -R`, `tee` and logs lead to a terminal.
 * `styleText` looks at the stream and at NO_COLOR by itself.
 */
export function createOutput(stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream, json: boolean) {
  const watched = stderr.isTTY === true;
  const running = createPrintable();
  let shown = false;
  const write = (text: string) => void stdout.write(`${running.end()}${text}`);
  const print = (text: string) => {
    if (!json) write(text);
  };
  const status = (text: string) => {
    if (!watched || (text === '' && !shown)) return;
    const width = Math.max(20, stderr.columns || 80);
    const line = printableText(text).replace(/\s+/g, ' ');
    stderr.write(`${clearLine}${line.slice(0, width - 1)}`);
    shown = text !== '';
  };
  const painted = (piece: Piece) =>
    typeof piece === 'string'
      ? printableText(piece)
      : styleText(piece.style, printableText(piece.text), { stream: stdout });
  return {
    /** `--json`: documents are printed, and nothing else of these; without it documents are not. */
    json,
    line: (...pieces: Piece[]) => print(`${pieces.map(painted).join('')}\n`),
    /** Shows an answer as it arrives: Markdown is rendered on a terminal and unchanged elsewhere. It ends with a line end. */
    async answer() {
      if (json) return { add: () => {}, end: () => {} };
      const width = Math.min(stdout.columns || 80, maxWidth);
      const markdown =
        stdout.isTTY && (await import('./markdown.ts')).createMarkdown(width, stdout.hasColors?.() ?? false);
      let last = '\n';
      const show = (text: string) => {
        if (text === '') return;
        stdout.write(text);
        last = text.slice(-1);
      };
      const add = (text: string) => show(markdown ? markdown.add(text) : text);
      return {
        add: (delta: string) => add(running.add(delta)),
        end() {
          add(running.end());
          if (markdown) show(markdown.end());
          if (last !== '\n') show('\n');
        },
      };
    },
    /** A file's content in pieces: unchanged unless it goes to a terminal. Waits for whoever reads slowly, and ends with who stops. */
    async pieces(text: AsyncIterable<string>): Promise<void> {
      const send = async (piece: string) => {
        // What failed is told where all of the output is watched.
        if (!stdout.write(piece)) await once(stdout, 'drain').catch(() => undefined);
      };
      for await (const piece of text) {
        if (stdout.errored) return;
        await send(stdout.isTTY ? running.add(piece) : piece);
      }
      await send(running.end());
    },
    document: (document: JsonObject): void => {
      if (json) write(`${printableJson(JSON.stringify(document, undefined, 2))}\n`);
    },
    /** On stderr: what is wrong, or may be. */
    warn: (text: string): void => void stderr.write(`polylogue: ${printableText(text)}\n`),
    /** On stderr, and only when a person is there to read it. */
    remark: (text: string): void => {
      status('');
      if (watched) stderr.write(`${styleText('dim', printableText(text), { stream: stderr })}\n`);
    },
    /** On stderr, in place of the one before; empty text clears it. Only when a person watches. */
    status,
    /** For `line`: colored on a terminal. */
    style: (style: Style, text: string): Styled => ({ style, text }),
  };
}

/** Tells what failed, with the code whose page explains it, and what to do next: on stderr, with `--json` as a document too. */
export function tellFailure(out: Output, document: JsonObject): void {
  const { message = 'The call failed.', code, next } = recordIn(document.error);
  out.status('');
  out.document(document);
  out.warn(`${message}${typeof code === 'string' ? ` (${code})` : ''}${typeof next === 'string' ? `\n${next}` : ''}`);
}
