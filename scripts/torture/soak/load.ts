import { setTimeout as wait } from 'node:timers/promises';
import { SdkHttpError } from '@modelcontextprotocol/client';
import type { Random } from '../../../src/core/ports.ts';
import type { DoorClient } from '../../../test/support/doors.ts';
import type { Document } from '../../../test/support/product.ts';

/** A caller's thread is deleted after so many chats, so that what is stored does not grow. */
const chatsOfThread = 6;
/** So many callers in ten forget a thread instead, which expires. */
const forgetful = 0.1;

export interface Counts {
  chats: number;
  cancels: number;
  vendorFailures: number;
  otherTools: number;
  reconnects: number;
  deleted: number;
}

export interface CallerOptions {
  /** Each door has the client of its kind. */
  connect(): Promise<DoorClient>;
  /** A share of its actions; a bridge is a process, which costs more to start. */
  reconnects: number;
  random: Random;
  pace: Pace;
  signal: AbortSignal;
  counts: Counts;
  /** A chat that succeeded, in ms. */
  onChat(ms: number): void;
  /** Something that should not have been. */
  onProblem(what: string): void;
}

/** What all callers go by. */
export class Pace {
  /** Milliseconds from one action of a caller to the next. */
  everyMs = 50;
  #active = 0;
  #resting: Promise<void> | undefined;

  /** Runs one action, once nobody rests. */
  async act(action: () => Promise<void>): Promise<void> {
    await this.#resting;
    this.#active++;
    await action().finally(() => this.#active--);
  }

  /** Does something while nobody calls, after what was begun has ended. */
  async rest<T>(quiet: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resting = promise;
    try {
      while (this.#active > 0) await wait(20);
      return await quiet();
    } finally {
      this.#resting = undefined;
      resolve();
    }
  }
}

/** Calls one thing after the other through one door, at the rate of all, until it is told to stop. */
export async function runCaller(options: CallerOptions): Promise<void> {
  const { random, pace, signal, counts, onProblem } = options;
  let client = await options.connect();
  const caller = callerOf(() => client, options);
  let due = performance.now() + random.fraction() * pace.everyMs;
  while (!signal.aborted) {
    await wait(Math.max(0, due - performance.now()));
    // What a busy machine missed is not made up for: the rate would be another one afterwards.
    due = Math.max(due, performance.now()) + pace.everyMs;
    try {
      await pace.act(async () => {
        if (random.fraction() < options.reconnects) {
          await client.close();
          client = await options.connect();
          counts.reconnects++;
        }
        await caller.act();
      });
    } catch (error) {
      onProblem(problemOf(error));
    }
  }
  await client.close();
}

/** An HTTP error's message has only its text, which may be empty. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof SdkHttpError ? `${error.message} (HTTP ${error.status})` : error.message;
}

const step = { step: 'Look.', findings: 'The notes have a line.', total_steps: 2, step_number: 1 };

function callerOf(client: () => DoorClient, { random, counts, onChat, onProblem }: CallerOptions) {
  let thread: string | undefined;
  let chats = 0;

  async function expectDone(name: string, args: Record<string, unknown>): Promise<Document> {
    const reply = await client().call(name, args);
    if (reply.isError) onProblem(`${name}: ${JSON.stringify(reply).slice(0, 300)}`);
    return reply;
  }

  async function chat(): Promise<void> {
    const began = performance.now();
    const files = random.fraction() < 0.3 ? { absolute_file_paths: ['notes.md'] } : {};
    const prompt = `Question ${random.uuid()}: why?`;
    const reply = await expectDone('chat', { prompt, ...files, ...(thread && { continuation_id: thread }) });
    if (reply.isError) return;
    onChat(performance.now() - began);
    counts.chats++;
    thread = String(reply.continuation_offer?.continuation_id);
    if (++chats < chatsOfThread) return;
    if (random.fraction() >= forgetful) {
      await expectDone('threads', { action: 'delete', continuation_id: thread, confirm: true });
      counts.deleted++;
    }
    thread = undefined;
    chats = 0;
  }

  /** In a thread of its own, which expires: an interrupted exchange takes no place in the caller's. */
  async function cancel(): Promise<void> {
    const stop = new AbortController();
    const call = client().call('chat', { prompt: `Slow ${random.uuid()}.` }, { signal: stop.signal });
    const ended = call.then(
      () => undefined,
      () => undefined,
    );
    await wait(random.fraction() * 150);
    stop.abort();
    await ended;
    counts.cancels++;
  }

  async function failAtVendor(): Promise<void> {
    const reply = await client().call('chat', { prompt: `Fail ${random.uuid()}.`, model: 'deepseek-flash' });
    // Half of an answer is one: the reply says so.
    if (!reply.isError && reply.status !== 'partial')
      onProblem(`an answer of a vendor that only fails: ${reply.status}`);
    counts.vendorFailures++;
  }

  async function otherTool(): Promise<void> {
    const tools: (() => Promise<Document>)[] = [
      () => expectDone('listmodels', {}),
      () => expectDone('threads', { action: 'list' }),
      () => expectDone('threads', { action: 'search', query: 'question' }),
      () => expectDone('analyze', { ...step, next_step_required: true, relevant_files: ['notes.md'] }),
      () => expectDone('consensus', { prompt: `Keep ${random.uuid()}?`, models: ['gpt-5-mini', 'gpt-5'] }),
    ];
    await tools[Math.floor(random.fraction() * tools.length)]?.();
    counts.otherTools++;
  }

  return {
    act(): Promise<void> {
      const choice = random.fraction();
      if (choice < 0.68) return chat();
      if (choice < 0.76) return cancel();
      if (choice < 0.8) return failAtVendor();
      return otherTool();
    },
  };
}
