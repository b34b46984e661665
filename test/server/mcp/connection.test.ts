import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server';
import { describe, expect, it } from 'vitest';
import { cancelOf, watchConnection } from '../../../src/server/mcp/connection.ts';

/** A transport that writes when it is told to, or fails. */
function slowTransport() {
  const written: JSONRPCMessage[] = [];
  const writes: { resolve(): void; reject(error: Error): void }[] = [];
  const transport: Transport = {
    async start() {},
    async close() {},
    send(message) {
      written.push(message);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      writes.push({ resolve, reject });
      return promise;
    },
  };
  return { transport, written, writes };
}

const answer = (id: number): JSONRPCMessage => ({ jsonrpc: '2.0', id, result: {} });
const turn = () => new Promise(resolve => setTimeout(resolve, 5));

describe('a connection', () => {
  it('says that an answer arrived once it was written, and not that of a request or another answer', async () => {
    const { transport, writes } = slowTransport();
    const connection = watchConnection(transport);
    const arrived: number[] = [];
    for (const id of [1, 2]) connection.onAnswered(id, new AbortController().signal, () => arrived.push(id));
    void transport.send({ jsonrpc: '2.0', id: 2, method: 'elicitation/create' });
    void transport.send(answer(1));
    await turn();
    expect(arrived).toEqual([]);
    for (const { resolve } of writes) resolve();
    await turn();
    expect(arrived).toEqual([1]);
  });

  it('says nothing of an answer that could not be written, or whose request was cancelled', async () => {
    const { transport, writes } = slowTransport();
    const connection = watchConnection(transport);
    const arrived: number[] = [];
    const cancel = new AbortController();
    connection.onAnswered(1, new AbortController().signal, () => arrived.push(1));
    connection.onAnswered(2, cancel.signal, () => arrived.push(2));
    cancel.abort();
    const failing = transport.send(answer(1)).catch(error => error);
    void transport.send(answer(2));
    writes[0]!.reject(new Error('EPIPE'));
    writes[1]!.resolve();
    expect(await failing).toMatchObject({ message: 'EPIPE' });
    await turn();
    expect(arrived).toEqual([]);
  });

  it('says nothing of an answer that was written after the client ended its input', async () => {
    const { transport, writes } = slowTransport();
    const end = new AbortController();
    const connection = watchConnection(transport, { inputEnded: end.signal });
    const arrived: number[] = [];
    for (const id of [1, 2]) connection.onAnswered(id, new AbortController().signal, () => arrived.push(id));
    void transport.send(answer(1));
    writes[0]!.resolve();
    await turn();
    end.abort();
    void transport.send(answer(2));
    writes[1]!.resolve();
    await turn();
    expect(arrived).toEqual([1]);
  });

  it('tells a client that is gone from one that cancels, and counts nothing that was written to nobody', async () => {
    const { transport, writes } = slowTransport();
    const ended: string[] = [];
    transport.onclose = () => ended.push('requests');
    const connection = watchConnection(transport);
    connection.gone.addEventListener('abort', () => ended.push('gone'));
    const [one, two] = [new AbortController(), new AbortController()];
    const cancels = [one, two].map(({ signal }) => cancelOf(signal, connection));
    one.abort('enough');
    const arrived: number[] = [];
    connection.onAnswered(3, new AbortController().signal, () => arrived.push(3));
    void transport.send(answer(3));
    writes[0]!.resolve();
    transport.onclose?.();
    two.abort('closed');
    await turn();
    expect(cancels.map(({ aborted, reason }) => aborted && reason)).toEqual(['enough', false]);
    expect(ended).toEqual(['gone', 'requests']);
    expect(arrived).toEqual([]);
  });
});
