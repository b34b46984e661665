/** A line of more bytes is left out: nobody takes it. */
export interface LongLine {
  tooLong: true;
}

/** The lines of a stream of UTF-8, without their ends; empty ones are left out. */
export async function* linesOf(
  input: AsyncIterable<Buffer | string>,
  maxBytes: number,
): AsyncGenerator<string | LongLine> {
  let parts: Buffer[] = [];
  let size = 0;
  for await (const piece of input) {
    let rest = typeof piece === 'string' ? Buffer.from(piece) : piece;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      size += end;
      if (size > maxBytes) yield { tooLong: true };
      else {
        const line = Buffer.concat([...parts, rest.subarray(0, end)]).toString('utf8');
        if (line.trim() !== '') yield line;
      }
      parts = [];
      size = 0;
      rest = rest.subarray(end + 1);
    }
    size += rest.length;
    if (size > maxBytes) parts = [];
    else if (rest.length > 0) parts.push(rest);
  }
}
