import { z } from 'zod';
import { type FileRecord, fileForms } from '../../core/file.ts';
import { isExchangeId, isSha256, isThreadId } from '../../core/ids.ts';
import { isRecord, type JsonObject } from '../../core/json.ts';
import {
  type Citation,
  type Compaction,
  exchangeStatuses,
  type ImageRecord,
  type ModelMetadata,
  type PanelistRecord,
  type StoredTurn,
  type ThreadHead,
  type ToolCallRecord,
  type Trim,
} from '../../core/thread.ts';
import { type Fee, feeKinds, type Usage } from '../../core/usage.ts';

/** First line of a thread's file: what it is. */
export const formatName = 'polylogue.thread';
/** Raised with every change of the records below that a program of before could not read. */
export const formatVersion = 1;

/** What is kept of a thread's head: all but where it lives, whose it is and how long, which the importer decides. */
export type FileHead = Pick<
  ThreadHead,
  'id' | 'toolName' | 'title' | 'createdAt' | 'updatedAt' | 'totals' | 'initialContext'
> & {
  /** The `seq` before the first turn: above 0 where the beginning of a fork is lost. */
  startSeq: number;
};

/** One line of a thread's file, in this order: head, turns, compactions, workflow states, blobs, end. */
export type FileRecordLine = z.output<typeof line>;

/** Does not compile when a member of `Whole` is missing: what a turn gains must be in its file too. */
function strict<Whole>() {
  return <Shape extends Record<keyof Whole, z.ZodType>>(shape: Shape) => z.strictObject(shape);
}

const controls = /\p{Cc}/u;
const text = z.string();
/** Stands on a line with other words: no line break can make it look like something else. */
const word = z
  .string()
  .max(500)
  .refine(value => !controls.test(value), 'has control characters');
const path = z
  .string()
  .max(8_192)
  .refine(value => !value.includes('\0'), 'has a NUL character');
const count = z.int().min(0);
/** Tokens of models whose numbers are estimates may be fractions. */
const amount = z.number().min(0);
const time = z.number().min(0).max(8.64e15);
const only = <Value extends string>(is: (value: string) => value is Value, problem: string) =>
  z.custom<Value>(value => typeof value === 'string' && is(value), problem);
const hashes = only(isSha256, 'is no SHA-256 in lower case');
/** Any JSON object; how deep it goes is checked where the line is read. */
const anything = z.custom<JsonObject>(isRecord, 'is no object');

const file = strict<FileRecord>()({
  path,
  form: z.enum(fileForms),
  size: count,
  mtimeMs: z.number(),
  lines: count,
  sha256: hashes,
  base: hashes.optional(),
  shown: hashes.optional(),
  range: z.strictObject({ from: z.int().min(1), to: z.int().min(1) }).optional(),
  document: z.boolean().optional(),
});

const image = strict<ImageRecord>()({
  source: path,
  mediaType: z.string().regex(/^image\/[a-z0-9.+-]{1,40}$/),
  blob: hashes,
});

const citation = strict<Citation>()({
  title: text,
  url: z.string().max(8_192),
  snippet: text.optional(),
  date: text.optional(),
  provider: word,
});

const fee = strict<Fee>()({ amount, usd: amount, unpriced: amount.optional() });

const usage = strict<Usage>()({
  input: amount,
  output: amount,
  reasoning: amount,
  cacheRead: amount,
  cacheWrite: amount,
  cacheWriteHour: amount.optional(),
  fees: z.partialRecord(z.enum(feeKinds), fee).optional(),
  estimated: count.optional(),
});

const panelistRecord = strict<PanelistRecord>()({
  expert: word,
  model: word,
  stance: word,
  status: z.enum(['success', 'error', 'skipped']),
  position: word.optional(),
  confidence: amount.optional(),
  latencyMs: amount.optional(),
  costUsd: amount.optional(),
  from: count,
  to: count,
});

const toolCall = strict<ToolCallRecord>()({
  name: word,
  args: text,
  outcome: z.enum(['ok', 'failed', 'refused', 'invalid']),
  approval: word.optional(),
  reason: text.optional(),
});

const metadata = strict<ModelMetadata>()({
  requested: text.optional(),
  effort: word.optional(),
  thinkingBudget: count.optional(),
  finishReason: text.optional(),
  usage: usage.optional(),
  costUsd: amount.optional(),
  latencyMs: amount.optional(),
  webSearch: z.boolean().optional(),
  asked: z.array(word).optional(),
  voices: z.array(panelistRecord).optional(),
  toolCalls: z.array(toolCall).optional(),
});

const turn = strict<Omit<StoredTurn, 'attempts'>>()({
  seq: z.int().min(1),
  role: z.enum(['user', 'assistant']),
  status: z.enum(exchangeStatuses),
  exchange: only(isExchangeId, 'is no UUID'),
  timestamp: time,
  toolName: word,
  modelProvider: word.optional(),
  modelName: word.optional(),
  modelMetadata: metadata.optional(),
  content: text,
  files: z.array(file),
  images: z.array(image),
  citations: z.array(citation),
  tokens: amount,
});

const trim = strict<Trim>()({ seq: z.int().min(1), chars: count.optional() });

const compaction = strict<Compaction>()({
  window: amount,
  upToSeq: count,
  summary: text,
  trims: z.array(trim),
  createdAt: time,
});

const head = strict<FileHead>()({
  id: only(isThreadId, 'is no UUID'),
  toolName: word,
  title: z.string().max(2_000),
  createdAt: time,
  updatedAt: time,
  totals: z.strictObject({ tokens: amount, costUsd: amount }),
  startSeq: count.max(1e9),
  initialContext: anything,
});

const line = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('head'), head }),
  z.strictObject({ kind: z.literal('turn'), turn }),
  z.strictObject({ kind: z.literal('compaction'), compaction }),
  z.strictObject({ kind: z.literal('workflow'), tool: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/), state: anything }),
  z.strictObject({ kind: z.literal('blob'), sha256: hashes, text }),
  z.strictObject({ kind: z.literal('end'), turns: count, blobs: count }),
]);

/** A record with its members in the format's order, or what is wrong with it in one sentence. */
export function checkedRecord(value: unknown): FileRecordLine | { problem: string } {
  const result = line.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const place = issue?.path.map(String).join('.');
  return { problem: [place, issue?.message].filter(Boolean).join(': ') || 'it is no record of a thread' };
}
