/** One piece of a stream. */
export interface Frame {
  event?: string;
  /** A comment that goes before it, where the framing has such. */
  comment?: string;
  /** An object is sent as JSON. */
  data: string | Record<string, unknown>;
}

/** One answer in one dialect. The frames count themselves, so each is made when it is sent, in order. */
export interface Wire {
  /** Until the first piece of text, reasoning included. */
  open(): Frame[];
  /** One piece of text. */
  text(piece: string): Frame;
  /** From the end of the text on. */
  close(): Frame[];
  /** The vendor's way to give up under a 200. */
  fail(): Frame[];
  /** The whole answer of a request that does not stream. */
  whole(): Record<string, unknown>;
}

/** How pieces are told apart on the wire. */
export interface Framing {
  contentType: string;
  encode(frame: Frame, eol?: string): string;
  /** Says nothing, but is sent. */
  filler: string;
}

export const serverSentEvents: Framing = {
  contentType: 'text/event-stream; charset=utf-8',
  filler: ': \n',
  encode({ event, comment, data }, eol = '\n') {
    const before = comment === undefined ? '' : `: ${comment}${eol}${eol}`;
    const name = event === undefined ? '' : `event: ${event}${eol}`;
    return `${before}${name}data: ${typeof data === 'string' ? data : JSON.stringify(data)}${eol}${eol}`;
  },
};

/** One JSON object a line. */
export const jsonLines: Framing = {
  contentType: 'application/x-ndjson',
  filler: '\n',
  encode: ({ data }, eol = '\n') => `${typeof data === 'string' ? data : JSON.stringify(data)}${eol}`,
};
