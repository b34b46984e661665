import { fstatSync } from 'node:fs';
import { inputError } from '../core/errors.ts';

const maxBytes = 4_194_304;

/** The text that was piped or redirected into the program; undefined where its input is a terminal or nothing. */
export async function readPiped(input: NodeJS.ReadStream & { fd: number }): Promise<string | undefined> {
  if (input.isTTY || !hasContent(input.fd)) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > maxBytes) {
      throw inputError(`The input is larger than ${maxBytes} bytes.`, {
        next: 'Write it into a file of the project and name that file with --file.',
      });
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function hasContent(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isFIFO() || stats.isFile() || stats.isSocket();
  } catch {
    // A closed standard input has nothing to say.
    return false;
  }
}
