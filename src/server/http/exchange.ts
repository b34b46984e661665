import type { Caller } from '../access/caller.ts';

/** A request that passed the guards. */
export interface GuardedRequest {
  request: Request;
  /** The body as JSON; undefined where there is none. */
  body: unknown;
  caller: Caller;
  /** The project that the client says it is in, an absolute path. */
  root: string | undefined;
}

/** What a door answers. */
export interface Exchange {
  response: Response;
  /** It lasts for as long as its client likes, and nobody waits for its end. */
  listens?: boolean;
  /** Called when the response is over: whether all of it was handed to the client's side. */
  onWritten?: (whole: boolean) => void;
}
