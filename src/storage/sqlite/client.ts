import { Worker } from 'node:worker_threads';
import { isAppError, storageError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { createLingering } from '../../memory/stores/lingering.ts';
import type {
  ControlRequest,
  WriteRequest,
  WriterAnswer,
  WriterOptions,
  WriterRequest,
} from '../../memory/stores/sqlite-protocol.ts';
import { unpackFailure } from './failure.ts';

/** The near side of the writer's thread, which it starts with the first request and again when it died. */
export interface SqliteClient {
  /** `unhurried`: goes along with the next request, in its transaction, or after a few milliseconds by itself. */
  send(request: WriteRequest | ControlRequest, unhurried?: boolean): Promise<number>;
  /** True once something succeeded: then the file is there and ready. */
  opened(): boolean;
  /** Waits for what was sent, and ends the thread. */
  end(): Promise<void>;
}

interface Waiting {
  resolve(value: number): void;
  reject(error: unknown): void;
}

const program = new URL(import.meta.url.endsWith('.ts') ? './writer.ts' : './sqlite-writer.js', import.meta.url);

export function sqliteClient(options: WriterOptions, clock: Clock, onWarning: (message: string) => void): SqliteClient {
  const waiting = new Map<number, Waiting>();
  let worker: Worker | undefined;
  let opened = false;
  let lastId = 0;
  const lingering = createLingering();

  function settle(answer: WriterAnswer): void {
    if ('warning' in answer) {
      onWarning(answer.warning);
      return;
    }
    const asked = waiting.get(answer.id);
    waiting.delete(answer.id);
    // An idle store keeps no process alive; one that still owes an answer does.
    if (waiting.size === 0) worker?.unref();
    if ('failure' in answer) {
      asked?.reject(unpackFailure(answer.failure));
      return;
    }
    opened = true;
    asked?.resolve(answer.value);
  }

  function start(): Worker {
    const started = new Worker(options.program === undefined ? program : new URL(options.program), {
      workerData: options,
      execArgv: [],
    });
    const died = (cause?: unknown) => {
      if (worker !== started) return;
      worker = undefined;
      opened = false;
      const error = storageError('unavailable', `The writer of ${options.file} ended unexpectedly.`, {
        cause,
        retryable: true,
        next: 'Try again: it is started anew. Read the thread first, because the change may have been made.',
      });
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    };
    started.on('message', settle);
    started.on('error', died);
    started.on('exit', () => died());
    return started;
  }

  function post(request: WriteRequest | ControlRequest, asked: Waiting): void {
    try {
      worker ??= start();
      const message: WriterRequest = { id: ++lastId, now: clock.now(), request };
      // First, because it throws when the request holds what cannot be copied.
      worker.postMessage(message);
      waiting.set(message.id, asked);
      worker.ref();
    } catch (error) {
      asked.reject(error);
    }
  }

  return {
    opened: () => opened,

    send(request, unhurried = false) {
      return new Promise((resolve, reject) => {
        const postIt = () => post(request, { resolve, reject });
        if (unhurried) return lingering.add(postIt);
        // The writer takes what comes in one go into one transaction, in this order.
        lingering.flush();
        postIt();
      });
    },

    async end() {
      lingering.flush();
      const current = worker;
      if (!current) return;
      const gone = new Promise<void>(resolve => current.once('exit', () => resolve()));
      try {
        await this.send({ op: 'close' });
      } catch (error) {
        // Everything that was acknowledged is in the file; only moving it to its final place did not work.
        onWarning(isAppError(error) ? error.message : String(error));
      }
      current.ref();
      await gone;
    },
  };
}
