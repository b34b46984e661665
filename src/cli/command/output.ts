import { once } from 'node:events';
import { styleText } from 'node:util';
import type { JsonObject } from '../../core/json.ts';

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

/** Where a command says things: results on stdout, remarks for a person on stderr. */
export interface Output {
  /** `--json`: one document instead of lines. */
  json: boolean;
  line(text: string): void;
  /** As it is, without a line end. */
  text(text: string): void;
  /** The same for a text in pieces; waits for whoever reads slowly. */
  pieces(text: AsyncIterable<string>): Promise<void>;
  document(document: JsonObject): void;
  /** On stderr, and only when a person is there to read it. */
  remark(text: string): void;
  /** On stderr, in place of the one before; empty text clears it. Only when a person watches. */
  status(text: string): void;
  /** Coloured on a terminal, as it is elsewhere. */
  style(style: Style, text: string): string;
}

const clearLine = '\r\u001b[2K';

/** `styleText` looks at the stream and at NO_COLOR by itself. */
export function createOutput(stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream, json: boolean): Output {
  const watched = stderr.isTTY === true;
  let shown = false;
  const status = (text: string) => {
    if (!watched || (text === '' && !shown)) return;
    const width = Math.max(20, stderr.columns ?? 80);
    stderr.write(`${clearLine}${text.slice(0, width - 1)}`);
    shown = text !== '';
  };
  return {
    json,
    line: text => void stdout.write(`${text}\n`),
    text: text => void stdout.write(text),
    async pieces(text) {
      for await (const piece of text) if (!stdout.write(piece)) await once(stdout, 'drain');
    },
    document: document => void stdout.write(`${JSON.stringify(document, undefined, 2)}\n`),
    remark: text => {
      status('');
      if (watched) stderr.write(`${styleText('dim', text, { stream: stderr })}\n`);
    },
    status,
    style: (style, text) => (json ? text : styleText(style, text, { stream: stdout })),
  };
}
