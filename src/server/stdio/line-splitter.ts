/** What is known of a line that was too long to be kept. */
export interface LineEdges {
  head: string;
  tail: string;
}

export interface LineListener {
  /** A line without its end. Its bytes are good until the listener returns. */
  onLine(line: Buffer): void;
  /** A line has got longer than one may be; told when that is known. */
  onLong(): void;
  /** That line is over. */
  onLongEnd(edges: LineEdges): void;
}

const edgeBytes = 1_024;
const newline = 10;

/** Cuts what comes in pieces into lines; a line of more than `maxBytes` is not kept but for its edges. */
export function lineSplitter(maxBytes: number, listener: LineListener): (piece: Buffer) => void {
  let held = Buffer.alloc(0);
  let size = 0;
  let head: string | undefined;

  function keep(piece: Buffer): void {
    if (head !== undefined) keepTail(piece);
    else if (size + piece.length <= maxBytes) append(piece);
    else {
      const start = Buffer.concat([held.subarray(0, Math.min(size, edgeBytes)), piece.subarray(0, edgeBytes)]);
      head = start.toString('utf8', 0, edgeBytes);
      const before = held.subarray(Math.max(0, size - edgeBytes), size);
      held = Buffer.concat([before, piece.subarray(-edgeBytes)]).subarray(-edgeBytes);
      size = held.length;
      listener.onLong();
    }
  }

  function keepTail(piece: Buffer): void {
    held = Buffer.concat([held.subarray(0, size), piece.subarray(-edgeBytes)]).subarray(-edgeBytes);
    size = held.length;
  }

  /** Many small pieces are copied a few times each, and weigh no more than their bytes. */
  function append(piece: Buffer): void {
    if (size + piece.length > held.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * held.length, size + piece.length));
      held.copy(larger, 0, 0, size);
      held = larger;
    }
    piece.copy(held, size);
    size += piece.length;
  }

  function end(last: Buffer): void {
    // Whole lines in one piece are the rule.
    if (size === 0 && head === undefined && last.length <= maxBytes) {
      listener.onLine(last);
      return;
    }
    keep(last);
    const line = held.subarray(0, size);
    const long = head;
    held = Buffer.alloc(0);
    size = 0;
    head = undefined;
    if (long === undefined) listener.onLine(line);
    else listener.onLongEnd({ head: long, tail: line.toString('utf8') });
  }

  return piece => {
    let rest = piece;
    for (let at = rest.indexOf(newline); at >= 0; at = rest.indexOf(newline)) {
      end(rest.subarray(0, at));
      rest = rest.subarray(at + 1);
    }
    if (rest.length > 0) keep(rest);
  };
}
