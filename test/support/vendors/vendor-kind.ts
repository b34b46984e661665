import type { Dialect, ListedModel } from './fake-vendor.ts';
import type { Segment } from './prompt.ts';
import type { Reading } from './reading.ts';
import type { Refusal } from './refusal.ts';
import type { Reply } from './reply.ts';
import type { Framing, Wire } from './wire.ts';

export type AskDialect = Exclude<Dialect, 'models' | 'count'>;

export interface CacheUse {
  read: number;
  written: number;
  /** Puts an answer into the vendor's words, once it is known what the cache did. */
  wire(reply: Reply): Wire;
}

/** What a vendor tells in the address that others tell in the body, such as the model. */
export type AddressFields = Record<string, unknown>;

export interface BesideRequest {
  method: string;
  /** Below the version path, query included. */
  path: string;
  headers: Record<string, string>;
  bytes: Buffer;
}

export interface BesideAnswer {
  status: number;
  /** A text is sent as it is, anything else as JSON. */
  body: unknown;
}

/** What sets one vendor apart from another; the server around it is the same. */
export interface VendorKind {
  /** The version path; default `/v1`. */
  root?: string;
  /** How a stream is cut into pieces; default server-sent events. */
  framing?: Framing;
  /** Method and path below the version path, e.g. `POST /responses`. */
  routes: Readonly<Record<string, Dialect>>;
  /** For addresses that carry more than a route: the route as it stands in `routes`, and what else it says. Gets the query too. */
  readAddress?(path: string): { route: string; fields: AddressFields };
  /** Missing and wrong keys, and headers that every request needs. */
  authorise(headers: Record<string, string>): Refusal | undefined;
  /** What is wrong with a body, whatever it holds. */
  check(
    dialect: AskDialect,
    body: Record<string, unknown>,
    headers: Record<string, string>,
    address: AddressFields,
  ): Refusal | undefined;
  read(dialect: AskDialect, body: Record<string, unknown>, address: AddressFields): Reading;
  /** Looks the prompt up in the vendor's cache and remembers it. */
  cache(
    dialect: AskDialect,
    body: Record<string, unknown>,
    segments: readonly Segment[],
    address: AddressFields,
  ): CacheUse;
  /** The answer of GET /models, or of whatever tells of models; the body is that of a POST. */
  listing(models: readonly ListedModel[], query: URLSearchParams, body: unknown): Record<string, unknown>;
  /** What is wrong with a body that asks about models. */
  checkListing?(models: readonly ListedModel[], body: unknown): Refusal | undefined;
  /** Counting a prompt's tokens without answering it, where the vendor does that. */
  count?: {
    check(body: Record<string, unknown>, address: AddressFields): Refusal | undefined;
    read(body: Record<string, unknown>, address: AddressFields): Reading;
    answer(tokens: number): Record<string, unknown>;
  };
  /** Headers of every answer; `id` is new for each. */
  headers(id: string): Record<string, string>;
  /** Services beside the models, such as files; undefined: no such address. Asked for what `routes` does not know. */
  beside?(request: BesideRequest): BesideAnswer | undefined;
  /** Puts the id into a body that carries one. */
  stamp(body: unknown, id: string): unknown;
  badJson(): Refusal;
  /** Absent where no size is documented. */
  tooLarge?(bytes: number): Refusal | undefined;
  wrongAddress(method: string, path: string): Refusal;
  unknownModel(id: string): Refusal;
  tooLong(dialect: AskDialect, tokens: number, window: number): Refusal;
  /** What the vendor sends with a status. */
  statusBody(status: number): unknown;
}
