/** One server-sent event. */
export interface Frame {
  event?: string;
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

export function encodeFrame({ event, data }: Frame, eol = '\n'): string {
  const name = event === undefined ? '' : `event: ${event}${eol}`;
  return `${name}data: ${typeof data === 'string' ? data : JSON.stringify(data)}${eol}${eol}`;
}
