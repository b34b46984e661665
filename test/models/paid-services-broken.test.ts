import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { dayOf } from '../../src/core/usage.ts';
import { createServiceMeter, paidEmbedder, paidSearcher } from '../../src/models/paid-services.ts';
import { createMeter } from '../../src/models/spend-meter.ts';
import { namedEmbedder } from '../../src/providers/embeddings.ts';
import { createZhipuWebSearch, zhipu } from '../../src/providers/zhipu/zhipu.ts';
import { createMemoryStore } from '../../src/storage/memory/memory.ts';
import { manualClock } from '../support/clock.ts';
import { seededRandom } from '../support/random.ts';

/** How a server treats a request that it read. */
const ends = {
  'closes the connection in the middle of its answer': response => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' }).write('{"data": [');
    setImmediate(() => response.destroy());
  },
  'answers what is no JSON': response => void response.writeHead(200).end('<html>'),
  'is silent until the caller gives up': () => {},
  'refuses the key': response => void response.writeHead(401).end('{}'),
  'refuses the request': response => void response.writeHead(400).end('{}'),
  'is overloaded': response => void response.writeHead(503).end('{}'),
  'hangs up': response => void response.destroy(),
} satisfies Record<string, (response: import('node:http').ServerResponse) => void>;
type End = keyof typeof ends;

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function setUp(end: End) {
  let came = () => {};
  const arrived = new Promise<void>(resolve => {
    came = resolve;
  });
  server = createServer((request, response) => {
    request.resume().on('end', () => {
      ends[end](response);
      came();
    });
  });
  await new Promise<void>(resolve => server?.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store = createMemoryStore();
  const clock = manualClock();
  const meter = createServiceMeter(
    createMeter({
      ledger: store.spend,
      caps: { perDay: 1 },
      pricing: { isLocal: () => false, allowUnpriced: true },
      clock,
      random: seededRandom(1),
      emit: () => {},
      ask: () => Promise.reject(new TypeError('no model is asked')),
    }).limits,
  );
  const caller = new AbortController();
  if (end.startsWith('is silent')) void arrived.then(() => caller.abort());
  const payer = { owner: 'local' };
  const settings = { apiKey: 'test-key', baseUrl };
  const searcher = paidSearcher(
    createZhipuWebSearch(
      zhipu.endpoint(settings, () => 0),
      'search-prime',
    ),
    'search',
    meter,
  );
  const embedder = (name: string) =>
    paidEmbedder(
      namedEmbedder(
        name,
        () => settings,
        () => 0,
      ),
      'search index',
      meter,
    );
  const texts = Array.from({ length: 100 }, () => 'The door turns on its hinge.');
  const doors = {
    search: () => searcher.search({ query: 'doors', count: 3 }, payer, caller.signal),
    'embeddings of OpenAI': () => embedder('openai:text-embedding-3-small').embed(texts, caller.signal, payer),
    'embeddings of GLM': () => embedder('zhipu:embedding-3').embed(texts, caller.signal, payer),
  };
  const rows = () => store.spend.rows({ owner: 'local', from: dayOf(clock.now()) });
  return { doors, rows, caller };
}

const billed: End[] = [
  'closes the connection in the middle of its answer',
  'answers what is no JSON',
  'is silent until the caller gives up',
];
const free: End[] = ['refuses the key', 'refuses the request', 'is overloaded', 'hangs up'];
const services = ['search', 'embeddings of OpenAI', 'embeddings of GLM'] as const;

describe.each(services)('%s', service => {
  it.each(billed)('is a row with an estimate where the vendor %s', async end => {
    const { doors, rows } = await setUp(end);
    await expect(doors[service]()).rejects.toBeDefined();
    const [row] = await rows();
    expect(row).toMatchObject({ calls: 1, usage: { estimated: 1 } });
    const fee = row?.usage.fees?.[service === 'search' ? 'web_search' : 'embedding'];
    // Of the hundred texts 64 were sent.
    if (service === 'search') expect(fee?.amount).toBe(1);
    else expect(fee?.amount).toSatisfy((tokens: number) => tokens > 64 * 4 && tokens < 64 * 12);
  });

  it.each(free)('costs nothing where the vendor %s', async end => {
    const { doors, rows } = await setUp(end);
    await expect(doors[service]()).rejects.toBeDefined();
    expect(await rows()).toEqual([]);
  });

  it('costs nothing where the caller gave up before it was sent', async () => {
    const { doors, rows, caller } = await setUp('answers what is no JSON');
    caller.abort();
    await expect(doors[service]()).rejects.toBeDefined();
    expect(await rows()).toEqual([]);
  });
});
