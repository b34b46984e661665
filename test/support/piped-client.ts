import { PassThrough } from 'node:stream';
import type { Document, TestProduct } from './product.ts';

/** A client of the product's standard input and output, in this process, that writes what it likes. */
export interface PipedClient {
  /** Every message so far. */
  heard: Document[];
  /** What the server said beside them. */
  errors: string[];
  write(bytes: string | Uint8Array): void;
  send(message: Document): void;
  /** Sends a request and waits for the message that answers it. */
  ask(method: string, params?: object | null, id?: string | number): Promise<Document>;
  /** Resolves with the first message that fits and was not returned yet. */
  next(fits: (message: Document) => boolean): Promise<Document>;
  /** Begins as a 2025 client. */
  begin(capabilities?: object, protocolVersion?: string): Promise<Document>;
  close(): Promise<void>;
}

export async function pipedClient({ serve }: Pick<TestProduct, 'serve'>): Promise<PipedClient> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const errors: string[] = [];
  const heard: Document[] = [];
  const taken = new Set<Document>();
  const waiting = new Set<() => void>();
  let rest = '';
  output.on('data', piece => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    heard.push(...lines.map(line => JSON.parse(line)));
    for (const look of waiting) look();
  });
  const served = await serve({ input, output }, error => void errors.push(error.message));
  let last = 1_000;
  const self: PipedClient = {
    heard,
    errors,
    write: bytes => void input.write(bytes),
    send: message => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    ask(method, params, id = ++last) {
      self.send({ id, method, ...(params && { params }) });
      return self.next(message => message.id === id && message.method === undefined);
    },
    next: fits =>
      new Promise(resolve => {
        const look = () => {
          const found = heard.find(message => !taken.has(message) && fits(message));
          if (found === undefined) return;
          taken.add(found);
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    async begin(capabilities = {}, protocolVersion = '2025-11-25') {
      const clientInfo = { name: 'piped', version: '1' };
      const answer = await self.ask('initialize', { protocolVersion, capabilities, clientInfo });
      self.send({ method: 'notifications/initialized' });
      return answer;
    },
    async close() {
      input.end();
      await served.closed;
      await served.close(AbortSignal.abort());
    },
  };
  return self;
}
