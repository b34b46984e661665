import { createHash, randomUUID } from 'node:crypto';
import {
  type ExchangeId,
  exchangeId,
  jobId,
  type Sha256,
  sha256,
  type ThreadId,
  threadId,
} from '../../src/core/ids.ts';
import type { Job } from '../../src/core/job.ts';
import type { ThreadHead, Turn } from '../../src/core/thread.ts';
import type { Store, ThreadChange } from '../../src/storage/store.ts';

export const start = 1_800_000_000_000;
export const hour = 3_600_000;

export const newThreadId = (): ThreadId => threadId(randomUUID());
export const newExchangeId = (): ExchangeId => exchangeId(randomUUID());
export const hashOf = (text: string): Sha256 => sha256(createHash('sha256').update(text).digest('hex'));

export function headOf(changes: Partial<ThreadHead> = {}): ThreadHead {
  return {
    id: newThreadId(),
    owner: 'local',
    workspace: '/home/ann/project',
    toolName: 'chat',
    title: 'How to begin',
    createdAt: start,
    updatedAt: start,
    expiresAt: start + 720 * hour,
    initialContext: { prompt: 'How do I begin?' },
    totals: { tokens: 0, costUsd: 0 },
    seq: 0,
    ...changes,
  };
}

export function turnOf(seq: number, changes: Partial<Turn> = {}): Turn {
  return {
    seq,
    role: seq % 2 === 1 ? 'user' : 'assistant',
    content: `Turn number ${seq}.`,
    timestamp: start + seq,
    exchange: newExchangeId(),
    toolName: 'chat',
    files: [],
    images: [],
    citations: [],
    tokens: 10,
    ...changes,
  };
}

export function changeOf(baseSeq: number, changes: Partial<ThreadChange> = {}): ThreadChange {
  return { baseSeq, updatedAt: start + 1000 + baseSeq, expiresAt: start + 720 * hour, ...changes };
}

export function jobOf(changes: Partial<Job> = {}): Job {
  return {
    id: jobId(randomUUID()),
    owner: 'local',
    tool: 'chat',
    status: 'running',
    createdAt: start,
    updatedAt: start,
    expiresAt: start + 24 * hour,
    holder: 'process',
    ...changes,
  };
}

/** A new thread with these texts as turns, two and two in an exchange that is done. */
export async function threadWith(
  store: Store,
  texts: string[],
  changes: Partial<ThreadHead> = {},
): Promise<ThreadHead> {
  const head = headOf(changes);
  await store.create(head);
  for (let at = 0; at < texts.length; at += 2) {
    const exchange = newExchangeId();
    const turns = texts.slice(at, at + 2).map((content, index) => turnOf(at + index + 1, { content, exchange }));
    const { updatedAt, expiresAt } = head;
    await store.commit(head.id, {
      baseSeq: at,
      turns,
      exchange: { id: exchange, status: 'done' },
      updatedAt,
      expiresAt,
    });
  }
  return { ...head, seq: texts.length };
}
