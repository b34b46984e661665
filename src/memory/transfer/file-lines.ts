import { inputError, limitError, throwIfAborted } from '../../core/errors.ts';

/** The bytes of a file, from its beginning; asked for again, they begin again. */
export type OpenBytes = () => AsyncIterable<Uint8Array>;

/** A text of 10 MB may take six times as much in JSON; beyond this nothing of ours goes. */
const longestLine = 128 * 1024 * 1024;
const longestFile = 2 * 1024 * 1024 * 1024;
const lineEnd = 0x0a;

/** The lines of a file in UTF-8, without their ends. Never holds more than one of them. */
export async function* fileLines(open: OpenBytes, signal?: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parts: Uint8Array[] = [];
  let length = 0;
  let total = 0;
  let number = 1;

  const take = (): string => {
    const bytes = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    parts = [];
    length = 0;
    try {
      return decoder.decode(bytes).replace(/\r$/, '');
    } catch {
      throw inputError(`Line ${number} is no text in UTF-8.`, { next: 'Name the file as it was exported.' });
    }
  };
  const add = (part: Uint8Array): void => {
    length += part.length;
    if (length > longestLine) throw tooLarge(`Line ${number}`, longestLine);
    if (part.length > 0) parts.push(part);
  };

  for await (const chunk of open()) {
    throwIfAborted(signal);
    total += chunk.length;
    if (total > longestFile) throw tooLarge('The file', longestFile);
    let from = 0;
    for (let at = chunk.indexOf(lineEnd); at !== -1; at = chunk.indexOf(lineEnd, from)) {
      add(chunk.subarray(from, at));
      yield take();
      number++;
      from = at + 1;
    }
    add(chunk.subarray(from));
  }
  if (length > 0) yield take();
}

function tooLarge(what: string, bytes: number): Error {
  return limitError('size', `${what} has more than ${bytes} bytes; that is no thread of ours.`, {
    next: 'Name a file that export_thread or "polylogue export" wrote.',
  });
}
