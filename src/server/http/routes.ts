import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock, Random } from '../../core/ports.ts';
import type { ToolHost } from '../../core/tool-host.ts';
import type { Admission } from '../access/admission.ts';
import type { Caller, Refusal } from '../access/caller.ts';
import type { Identify, Tokens } from '../access/tokens.ts';
import type { ListedRoots } from '../mcp/clients.ts';
import type { McpOptions } from '../mcp/mcp.ts';

export interface GuardedRequest {
  request: Request;
  /** The body as JSON; undefined where there is none. */
  body: unknown;
  caller: Caller;
  /** The project that the client says it is in, an absolute path. */
  root: string | undefined;
}

export interface Exchange {
  response: Response;
  /** It lasts for as long as its client likes, and nobody waits for its end. */
  listens?: boolean;
  /** Called when the response is over: whether all of it was handed to the client's side. */
  onWritten?: (whole: boolean) => void;
}

/** Holds something from before an answer is made until it is written. */
export async function heldUntilWritten(release: () => void, open: () => Promise<Exchange>): Promise<Exchange> {
  try {
    const exchange = await open();
    const onWritten = (whole: boolean) => {
      release();
      exchange.onWritten?.(whole);
    };
    return { ...exchange, onWritten };
  } catch (error) {
    release();
    throw error;
  }
}

export interface CallerProduct {
  host: ToolHost;
  /** The project his relative paths start from. */
  root: string;
  instructions: string;
}

export interface RouteServices {
  version: string;
  clock: Clock;
  random: Random;
  tokens: Tokens;
  /** Who sends a token; wrong ones can't be tried without end. */
  identify: Identify;
  /** Where all calls pass: `admission.before(product.host, client)`, where `client` names whose share of the capacity they take. */
  admission: Admission;
  /**
   * What a caller may use. `root`: the project that he declares, an absolute path; absent: the first of those he may read.
   * Rejects with an `AppError` of kind `security` where he may not read it. `listed`: addresses of the directories that his
   * client lists, which choose his project as far as he may read them.
   */
  productOf(caller: Caller, root?: string, listed?: readonly string[]): Promise<CallerProduct>;
  /** Counts so many requests of a caller, one unless told; a refusal when there were too many of late. */
  admit(caller: Caller, count?: number): Refusal | undefined;
  /** Bytes of one body or frame. */
  maxBodyBytes: number;
  /** Milliseconds without one byte taken, after which a client is sent away. */
  stallMs: number;
  /** Milliseconds for all of a body or message. */
  requestMs: number;
  onError(error: Error): void;
}

/** A request that passed the guards of hosts and origins, and of tokens where it had to. */
export interface RoutedRequest {
  /** With the path and query as sent, the body unread but for its size, and a signal that is aborted when the client is gone. */
  request: Request;
  /** Who sent a good `Authorization` header, or the operator where no token is set; undefined where anybody may come and did. */
  caller: Caller | undefined;
  /** Where the client connects from. */
  address: string | undefined;
  /** Ends the answer once the signal is aborted, in the midst of whatever it says. */
  cutBy(signal: AbortSignal): void;
}

/** Something of the daemon's at a path of its own. */
export interface Route {
  /** As `/metrics`; one that ends in `/` means all that begins so, and the longest that fits is taken. */
  path: string;
  methods: readonly ('GET' | 'HEAD' | 'POST' | 'DELETE')[];
  /** `token`: who has none is refused before. `anybody`: the route asks by itself, such as with a form in a browser. */
  access: 'token' | 'anybody';
  /** A stream that lasts is written as fast as its client reads. Undefined: there is nothing at this path. */
  handle(request: RoutedRequest): Promise<Response | undefined>;
}

/** A connection that asks to become one of another protocol; it passed the guards of hosts and origins. */
export interface UpgradeRequest {
  incoming: IncomingMessage;
  socket: Duplex;
  head: Buffer;
  /** Whom a good `Authorization` header names, or the operator where there are no tokens; undefined: the first message has to say. */
  caller: Caller | undefined;
}

export interface UpgradeHandler {
  /** As `/ws`. */
  path: string;
  accept(request: UpgradeRequest): void;
  connections(): number;
  /** Ends all of them; calls of clients that are lost go on as after any loss. */
  close(): Promise<void>;
}

/** MCP for a caller, `wrap` around each host. `follows`: roots that his client lists choose his project, `guessed` until then. */
export function mcpOptionsOf(
  { version, clock, productOf }: Pick<RouteServices, 'version' | 'clock' | 'productOf'>,
  { host, root, instructions }: CallerProduct,
  { caller, guessed, follows }: { caller: Caller; guessed?: string | undefined; follows: boolean },
  wrap: (host: ToolHost) => ToolHost,
): McpOptions {
  const listed: ListedRoots = {
    clock,
    async productOf(addresses) {
      const { host, root } = await productOf(caller, guessed, addresses);
      return { host: wrap(host), root };
    },
  };
  const principal = { owner: caller.owner, root };
  return { host: wrap(host), version, instructions, principal, clock, ...(follows && { listed }) };
}
