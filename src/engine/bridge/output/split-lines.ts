import { StringDecoder } from 'node:string_decoder';

/** Longer ones are left out: no event of a CLI that matters is that long, and each is held in memory whole. */
export const longestLine = 8 * 1024 * 1024;

/** Bytes, cut anywhere, → whole lines. */
export function splitLines(onLine: (line: string) => void): { push(chunk: Buffer): void; end(): void } {
  const decoder = new StringDecoder('utf8');
  let pieces: string[] = [];
  let length = 0;
  const add = (text: string) => {
    length += text.length;
    if (length <= longestLine) pieces.push(text);
    else pieces = [];
  };
  const close = () => {
    const line = pieces.join('');
    const whole = length <= longestLine;
    pieces = [];
    length = 0;
    if (whole && line.trim() !== '') onLine(line);
  };
  const take = (text: string) => {
    let from = 0;
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
      add(text.slice(from, at));
      close();
      from = at + 1;
    }
    if (from < text.length) add(text.slice(from));
  };
  return {
    push: chunk => take(decoder.write(chunk)),
    end() {
      take(decoder.end());
      close();
    },
  };
}
