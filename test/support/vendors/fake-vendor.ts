import type { CallSteps } from './tool-calls.ts';
import type { FoundPage } from './web-search.ts';

export type Dialect = 'responses' | 'chat' | 'messages' | 'generate' | 'ollama' | 'models' | 'count';

/** A request as the fake read it, before it decided what to answer. */
export interface RecordedRequest {
  dialect: Dialect;
  /** As the client asked for it, query included. */
  path: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  /** The parsed JSON, or the raw text when it was none; undefined for a GET. */
  body: unknown;
  /** Milliseconds of a clock that never jumps. */
  at: number;
  /** Tools, system, messages as role + text; cache marks and the tail are left out. Grows only at its end when a conversation does. */
  canonical: string;
  /** All text of the request, tail included, in exact o200k tokens. Equals the input of the usage that is reported. */
  tokens: number;
  /** System texts first, then the messages under the vendor's own role words; tail included, an image is `[image]`. */
  messages: { role: string; text: string }[];
  /** What vendors key their caches on beside the text, as one stable string: model, effort, thinking, tools, response format. */
  parameters: string;
  /** Resolves when the client closed the socket before the answer was finished. */
  aborted: Promise<void>;
  wasAborted(): boolean;
}

/** Tokens that the answer reports; what is left out is computed. `input` counts cached tokens too, `output` reasoning too. */
export interface ReportedUsage {
  input: number;
  output: number;
  reasoning: number;
  cacheRead: number;
  cacheWrite: number;
}

interface StepScope {
  /** Kept for a request of this dialect. Absent: for any that asks a model (a listing of models takes no such step). */
  on?: Dialect;
  /** Kept for a request that has these words, so that tests can run at the same time. */
  about?: string;
}

export interface AnswerStep extends StepScope {
  /** Default: `Answer N.`, counted from 1 for each vendor. Cut at the request's own output limit, as a model is. */
  answer?: string | ((request: RecordedRequest) => string);
  /** Not before this has come, whatever the machine does meanwhile. */
  when?: Promise<unknown>;
  /** After that, until the headers. */
  delayMs?: number;
  /** Between two chunks of text. */
  chunkDelayMs?: number;
  /** Number of text chunks in a stream. Default: one for about 24 characters, at most 40. */
  chunks?: number;
  /** Shown where the request asked for it and counted in the usage always. */
  reasoning?: string;
  usage?: Partial<ReportedUsage>;
  /** `pause`, `full`: Anthropic's words for a search that it broke off and for a full window; others have none and end. */
  finish?: 'stop' | 'length' | 'content_filter' | 'pause' | 'full';
  /** As one JSON document, whatever was asked for, as servers send it that don't stream. */
  json?: true;
  /** Tools that it calls; the text is empty then unless `answer` gives one. Where the request offers no tools, it calls none. */
  calls?: CallSteps;
  /** Pages that the vendor's own search finds, where the request lets the model search. */
  finds?: readonly FoundPage[];
}

export interface StatusStep extends StepScope {
  fault: 'status';
  status: number;
  headers?: Record<string, string>;
  /** A text is sent as it is, anything else as JSON. Default: what the vendor itself sends with this status. */
  body?: unknown;
}

export interface BrokenStep extends StepScope {
  fault:
    | 'hang_before_headers'
    | 'hang_after_headers'
    /** Half of the answer, then nothing. */
    | 'hang_mid_stream'
    /** One character after the other, without an end. */
    | 'slow_drip'
    /** The connection is reset instead of an answer. */
    | 'reset'
    /** Half of the answer, then the connection is closed under it. */
    | 'cut_mid_stream'
    /** Half of the answer, then a clean end without the closing events. */
    | 'end_mid_stream'
    /** 200 with events that are no JSON. */
    | 'garbage'
    /** 200 with somebody's web page. */
    | 'html'
    /** Half of the answer, then the vendor's error event under the 200. */
    | 'error_in_stream'
    /** 200 without a byte of body. */
    | 'empty'
    /** 200 with blank lines and comments only. */
    | 'whitespace_and_comments'
    /** 200 with the vendor's error as one JSON document instead of a stream. */
    | 'json_error'
    /** A sound answer as one JSON document, whatever was asked for, as servers send it that don't stream. */
    | 'plain_json'
    /** A sound answer behind blank lines and comments. */
    | 'comments_first'
    /** A sound answer whose lines end with CR LF. */
    | 'crlf'
    /** A sound answer that is cut on the wire inside of its multi-byte characters. */
    | 'split_utf8';
  /** The answer that breaks; default `multibyteAnswer`. */
  answer?: string;
  /** Pages that the vendor's own search finds before it breaks. */
  finds?: readonly FoundPage[];
  /** Chunks of text that arrive before it breaks. Default: half of them; 0 breaks before any text. */
  after?: number;
  /** Between two chunks; default 0, and 25 for `slow_drip`. */
  chunkDelayMs?: number;
}

export type Step = AnswerStep | StatusStep | BrokenStep;

export interface FakeVendor {
  /** Base address with the version path, e.g. `http://127.0.0.1:1234/v1`. */
  url: string;
  /** All requests to a known address, refused ones too, in the order of their arrival. */
  requests: RecordedRequest[];
  /** Queues steps; each request that is not refused takes the next one that fits it. */
  script(...steps: Step[]): void;
  /** What happens when no queued step fits. */
  byDefault(step: Step): void;
  refuse?: never;
  /** One line for each request that the vendor would have refused, with what was wrong. */
  violations: string[];
  /** Connections on which an answer is awaited or under way; one that is merely kept alive does not count. */
  openSockets(): number;
  /** Ends every connection and frees the port. */
  close(): Promise<void>;
}

export interface ListedModel {
  id: string;
  window?: number;
  /** In the vendor's own words, where it tells them. */
  capabilities?: string[];
  /** What else the vendor's row says of it. */
  row?: Record<string, unknown>;
  /** Run by another server, to which this one forwards. */
  remote?: boolean;
}

export interface FakeVendorOptions {
  /** Keys that are accepted; default `['test-key']`. An empty list asks for none, as servers on one's own machine do. */
  keys?: string[];
  /** The vendor's list. When given, another model is refused as unknown. A `window` is told in the listing and enforced. */
  models?: ListedModel[];
  /** Input tokens that any model takes at the most. */
  window?: number;
}

/** Text that needs one to four bytes a character. */
export const multibyteAnswer = 'Grüße – naïve café, 世界 und 🎉: the answer goes on to its end.';
