/** An open connection to a daemon, one JSON-RPC message a text. */
export interface Link {
  send(text: string): void;
  /** Bytes that were sent and not yet taken by the system. */
  unsent(): number;
  /** Reads nothing until `resume`: the client takes nothing now. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** Who uses a link. */
export interface LinkListener {
  onText(text: string): void;
  /** The link is over, by whomever; called once, and nothing comes after it. */
  onLost(loss: Loss): void;
}

export interface Loss {
  /** What happened, for a person. */
  why: string;
  /** The daemon refuses something that was sent; sent again, it would end the same way. */
  refused: boolean;
}

/**
 * Opens a link, to a daemon that it may have to wait for or to start. `again`: there was one before, which may be about to come
 * back by itself. Rejects with an `AppError` where none is to be had.
 */
export type OpenLink = (listener: LinkListener, again: boolean, signal: AbortSignal) => Promise<Link>;
