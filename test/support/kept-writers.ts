import { EventEmitter } from 'node:events';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { MessageChannel, type MessagePort, type WorkerOptions } from 'node:worker_threads';

// Starting a thread costs as much processor time as ten calls, and almost every test has a product with a SQLite file of its
// own. So the writers' threads of closed products serve the next ones: the same code in a thread beside, started once.

/** The same object that `import … from 'node:worker_threads'` shows, but one that can be changed. */
const threads: typeof import('node:worker_threads') = createRequire(import.meta.url)('node:worker_threads');
const { Worker } = threads;

const writer = new URL('../../src/storage/sqlite/writer.ts', import.meta.url).href;
const host = new URL('./kept-writer-host.ts', import.meta.url);

type Thread = InstanceType<typeof Worker>;

const idle: Thread[] = [];
/** Data folders whose writers may share threads; every other thread is started as it always is. */
const homes = new Set<string>();

/** What a store sees of its thread, over a channel to a thread that was there before it and remains. */
class KeptWriter extends EventEmitter {
  readonly #port: MessagePort;

  constructor(workerData: unknown) {
    super();
    const thread = idle.pop() ?? new Worker(host, { execArgv: [], workerData: { program: host.href } });
    // The channel keeps the process alive for as long as the store wants that.
    thread.unref();
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const failed = (error: unknown) => this.emit('error', error);
    const ended = (code: number) => this.emit('exit', code);
    thread.once('error', failed);
    thread.once('exit', ended);
    port1.on('message', message => this.emit('message', message));
    // The writer closes its end last of all; a thread that died says nothing after that.
    port1.once('close', () => ended(0));
    thread.once('message', () => {
      thread.off('error', failed);
      thread.off('exit', ended);
      idle.push(thread);
    });
    thread.postMessage({ workerData, port: port2 }, [port2]);
  }

  postMessage(message: unknown): void {
    this.#port.postMessage(message);
  }

  ref(): void {
    this.#port.ref();
  }

  unref(): void {
    this.#port.unref();
  }
}

function isKept(program: unknown, { workerData }: WorkerOptions = {}): boolean {
  return String(program) === writer && [...homes].some(home => workerData?.file.startsWith(`${home}/`));
}

/** From now on, stores in this data folder share threads with those of other such folders, one after the other. */
export function keepWriters(home: string): void {
  if (threads.Worker === Worker) {
    threads.Worker = new Proxy(Worker, {
      construct: (target, [program, options], self) =>
        isKept(program, options)
          ? new KeptWriter(options.workerData)
          : Reflect.construct(target, [program, options], self),
    });
    syncBuiltinESMExports();
  }
  homes.add(home);
}

export function forgetWriters(home: string): void {
  homes.delete(home);
}
