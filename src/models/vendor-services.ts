import { z } from 'zod';
import type { JsonObject } from '../core/json.ts';
import type { Clock, SharedState } from '../core/ports.ts';

export interface VendorFile {
  id: string;
  filename: string;
  bytes: number;
  /** Epoch seconds. */
  createdAt: number;
  /** In the vendor's words: `ok`, `ready`, `error` … */
  status: string;
}

/** A vendor's store of files, which it reads. All of it throws an `AppError`. */
export interface VendorFiles {
  /** Bytes of one file at the most. */
  maxBytes: number;
  upload(file: { name: string; bytes: Uint8Array }, signal: AbortSignal): Promise<VendorFile>;
  list(signal: AbortSignal): Promise<VendorFile[]>;
  /** False when there is no such file. */
  remove(id: string, signal: AbortSignal): Promise<boolean>;
  /** The text of a file; undefined when there is no such file. */
  content(id: string, signal: AbortSignal): Promise<string | undefined>;
}

export interface SearchHit {
  title: string;
  url: string;
  /** The part of the page that matters, as the engine sees it. */
  snippet?: string;
  /** As the engine writes it. */
  date?: string;
  site?: string;
}

const cacheSchema = z.object({
  provider: z.string(),
  /** The vendor's id of the model; a cache serves no other. */
  model: z.string(),
  /** The thread whose prompts begin so. */
  thread: z.string(),
  /** The vendor's name of it. */
  name: z.string(),
  /** Of what was cached; another hash is another prompt. */
  hash: z.string(),
  /** Messages in it, instructions not counted. */
  messages: z.number(),
  /** As the vendor counts them. */
  tokens: z.number(),
  /** Epoch milliseconds; a renewal sets both anew. */
  created: z.number(),
  expires: z.number(),
  /** Paths of the files whose text is in it. */
  files: z.array(z.string()).catch([]),
});

/** A prompt's beginning that is kept at a vendor, and paid for while it is. */
export type VendorCache = z.infer<typeof cacheSchema>;

const prefix = 'cache/';

export const cacheKey = ({ provider, model, thread }: Pick<VendorCache, 'provider' | 'model' | 'thread'>): string =>
  `${prefix}${provider}/${model}/${thread}`;

/** All caches that processes on this store have at vendors, the newest first, with times of day. */
export async function listVendorCaches(state: SharedState, clock: Clock): Promise<VendorCache[]> {
  const [now, ahead] = [clock.storeTime(), clock.now() - clock.storeTime()];
  const found = [...(await state.list(prefix)).values()].flatMap(value => readVendorCache(value) ?? []);
  const kept = found.filter(cache => cache.expires > now).sort((a, b) => b.created - a.created);
  return kept.map(cache => ({ ...cache, created: cache.created + ahead, expires: cache.expires + ahead }));
}

/** Undefined for what another program wrote there. */
export const readVendorCache = (value: JsonObject | undefined): VendorCache | undefined =>
  cacheSchema.safeParse(value).data;

/** Makes vectors at a vendor. */
export interface VendorEmbedder {
  /** `provider:model`: vectors of different models can't be compared. */
  model: string;
  /** One vector a text, in their order. `report` gets the tokens of each request that is billed. Throws an `AppError`. */
  embed(
    texts: readonly string[],
    signal: AbortSignal,
    report?: (tokens: number, estimated?: boolean) => void,
  ): Promise<Float32Array[]>;
}

export interface Document {
  /** Its file name, for the vendor and for errors. */
  name: string;
  bytes: Uint8Array;
  /** Of the bytes. */
  sha256: string;
  /** Whose it is. */
  owner: string;
}

export interface UploadedDocument extends VendorFile {
  /** False where the vendor had it already. */
  fresh: boolean;
  /** What stands in it. */
  text: string;
}

/** A file of the account, and whether it came from here. */
export type KeptDocument = VendorFile & { ours: boolean };

/** Documents that a vendor reads for its models. All of it throws an `AppError`. */
export interface DocumentLibrary {
  /** Id of the provider whose models get documents this way. */
  provider: string;
  /** Bytes of one document at the most. */
  maxBytes: number;
  /** Whether a file is of a kind that is no plain text and that the vendor reads; told by its name. */
  reads(path: string): boolean;
  /** The text of a document, which is uploaded unless the vendor still has it. */
  read(document: Document, signal: AbortSignal): Promise<UploadedDocument>;
  /** The text of what was uploaded before. */
  readById(id: string, owner: string, signal: AbortSignal): Promise<{ filename: string; text: string }>;
  /** What the owner may see: its own; the one owner of a server without accounts sees all files of the account. */
  list(owner: string, signal: AbortSignal): Promise<KeptDocument[]>;
  /** False when the vendor had it no more. */
  remove(id: string, owner: string, signal: AbortSignal): Promise<boolean>;
}

export interface SearchRequest {
  query: string;
  /** 1 to 50. */
  count: number;
  /** How old pages may be; absent: any age. */
  recency?: 'oneDay' | 'oneWeek' | 'oneMonth' | 'oneYear' | 'noLimit';
  /** The only site to search. */
  domain?: string;
  /** The vendor's id of an engine; absent: the configured one. */
  engine?: string;
}

/** Searches the web without a model. Throws an `AppError`. */
export interface WebSearcher {
  provider: string;
  /** Searched with where a request names none. */
  engine: string;
  search(request: SearchRequest, signal: AbortSignal): Promise<SearchHit[]>;
}
