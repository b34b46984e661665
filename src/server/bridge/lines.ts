import { isUtf8 } from 'node:buffer';
import { idAtEdges, type RefusedMessage, refusedMessage } from '../messages/refused-message.ts';
import { lineSplitter } from '../stdio/line-splitter.ts';

/** A line that nobody takes, and what its sender is answered. */
export interface RefusedLine {
  refused: RefusedMessage;
}

/** The lines of a stream of UTF-8, without their ends; empty ones are left out. */
export async function* linesOf(
  input: AsyncIterable<Buffer | string>,
  maxBytes: number,
): AsyncGenerator<string | RefusedLine> {
  const found: (string | RefusedLine)[] = [];
  const split = lineSplitter(maxBytes, {
    onLine(line) {
      const text = line.toString('utf8').replace(/^\uFEFF/, '');
      if (text.trim() === '') return;
      const noText = { refused: refusedMessage(null, -32_700, 'The line is no UTF-8.') };
      found.push(isUtf8(line) ? text : noText);
    },
    // Its sender hears of it when his line is over.
    onLong() {},
    onLongEnd({ head, tail }) {
      const why = `A message may have ${maxBytes} bytes; name files by their paths instead of sending their text.`;
      found.push({ refused: refusedMessage(idAtEdges(head, tail), -32_600, why) });
    },
  });
  for await (const piece of input) {
    split(typeof piece === 'string' ? Buffer.from(piece) : piece);
    yield* found.splice(0);
  }
}
