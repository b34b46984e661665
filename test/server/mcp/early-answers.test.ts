import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEarlyAnswers } from '../../../src/server/mcp/early-answers.ts';
import { openStdio } from '../../../src/server/mcp/stdio.ts';
import { realClock } from '../../support/clock.ts';
import { type Document, type TestProduct, testProduct } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

let project: TempProject;
let running: TestProduct;
beforeAll(async () => {
  project = await tempProject();
  running = await testProduct({ root: project.root, env: { OFFLINE: 'true' } });
});
afterAll(async () => {
  await running.close();
  await project.dispose();
});

const clientInfo = { name: 'early', version: '1' };
const greeting = (params: object = {}, id: string | number = 1): Document => ({
  jsonrpc: '2.0',
  id,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo, ...params },
});
const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
const list = (id: string | number, params?: object): Document => ({ jsonrpc: '2.0', id, method: 'tools/list', params });
const version = { jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'version', arguments: {} } };

/** What a client reads that writes this and closes its input; `isEarly`: with what is answered before the product is there. */
async function talk(
  messages: readonly (Document | string)[],
  isEarly: boolean,
  hold: Promise<void> = Promise.resolve(),
) {
  const { host, instructions } = running.product;
  const [input, output] = [new PassThrough(), new PassThrough()];
  let text = '';
  output.on('data', piece => {
    text += piece;
  });
  let opened = 0;
  let isCalled: boolean | undefined;
  const open = async (called: boolean) => {
    isCalled = called;
    opened += 1;
    await hold;
    const principal = { owner: 'local', root: project.root };
    return { host, instructions, version: '7', principal, clock: realClock() };
  };
  const early = isEarly ? createEarlyAnswers({ listings: host.list(), instructions, version: '7' }) : undefined;
  const errors: string[] = [];
  const served = openStdio(open, { input, output, early, maxBytes: 100_000 }, error => errors.push(error.message));
  input.end(messages.map(each => (typeof each === 'string' ? each : JSON.stringify(each))).join('\n'));
  await turn();
  const atOnce = text;
  return {
    atOnce: () => atOnce.trim().split('\n').filter(Boolean),
    async end() {
      await served.closed;
      await served.close();
      return { lines: text.trim().split('\n').filter(Boolean).toSorted(), opened, isCalled, errors };
    },
  };
}

describe('what a host asks first', () => {
  it.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'])(
    'is answered in the bytes of the full server, and that is not loaded for it: %s',
    async protocolVersion => {
      const capabilities = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {}, url: {} } };
      const asked = [greeting({ protocolVersion, capabilities }), initialized, list('a'), list(3, {})];
      const early = await talk(asked, true);
      expect(early.atOnce()).toHaveLength(3);
      const { lines, opened } = await early.end();
      expect(lines).toEqual((await (await talk(asked, false)).end()).lines);
      expect(opened).toBe(0);
    },
  );

  it('is known to the full server afterwards, and answered once', async () => {
    const { end, atOnce } = await talk([greeting(), initialized, list(2), version, list(10)], true);
    expect(atOnce().map(line => JSON.parse(line).id)).toEqual([1, 2, 10]);
    const { lines, opened } = await end();
    const ids = lines.flatMap(line => JSON.parse(line).id ?? []);
    expect(ids.toSorted()).toEqual([1, 10, 2, 9]);
    expect(lines.some(line => line.includes('"isError":false'))).toBe(true);
    expect(opened).toBe(1);
  });

  it.each<[string, (Document | string)[]]>([
    ['an unknown revision', [greeting({ protocolVersion: '2099-01-01' }), list(2)]],
    ['no revision', [greeting({ protocolVersion: 7 }), greeting({}, 4), list(2)]],
    ['a capability of an unknown kind', [greeting({ capabilities: { roots: { listChanged: {} } } }), greeting({}, 4)]],
    [
      'a client with more to say of itself',
      [greeting({ clientInfo: { ...clientInfo, icons: 'none' } }), greeting({}, 4)],
    ],
    ['parameters that are no object', [{ ...greeting(), params: [] }]],
    [
      'an id that is none',
      [
        { ...greeting(), id: 1.5 },
        { ...greeting(), id: null },
      ],
    ],
    ['a list without a greeting', [list(2)]],
    ['a list from a cursor on', [greeting(), list(2, { cursor: 'x' })]],
    ['a second greeting', [greeting(), greeting({}, 2), list(3)]],
    [
      'a batch',
      [greeting({ protocolVersion: '2025-03-26' }), JSON.stringify([list(5), { ...list(6), method: 'ping' }])],
    ],
    ['a batch where there are none', [greeting(), JSON.stringify([list(5)])]],
    ['lines that are no messages', ['{', greeting(), 'nonsense', '', list(2)]],
  ])('is for the full server where it is unusual: %s', async (_what, messages) => {
    const early = await (await talk(messages, true)).end();
    const plain = await (await talk(messages, false)).end();
    expect(early.lines).toEqual(plain.lines);
    expect(early.errors).toEqual(plain.errors);
    expect(early.opened).toBe(1);
  });

  it('tells each request of a batch that nobody is going to serve it', async () => {
    const hold = Promise.reject(new Error('no product'));
    hold.catch(() => undefined);
    const batch = JSON.stringify([list(5), { ...list(6), method: 'ping' }, initialized]);
    const { lines } = await (await talk([greeting({ protocolVersion: '2025-03-26' }), batch], true, hold)).end();
    expect(lines.map(line => JSON.parse(line).id).toSorted()).toEqual([1, 5, 6]);
  });

  it('has its answers while the product is made, and what waits for that is answered with its error when it fails', async () => {
    const { promise: hold, reject } = Promise.withResolvers<void>();
    const { atOnce, end } = await talk([greeting(), version, list(2), { ...initialized, method: 'x' }], true, hold);
    expect(atOnce()).toHaveLength(2);
    reject(new Error('no product'));
    const { lines } = await end();
    expect(lines).toHaveLength(3);
    expect(lines.map(line => JSON.parse(line)).find(({ id }) => id === 9)).toEqual({
      jsonrpc: '2.0',
      id: 9,
      error: { code: -32_603, message: 'no product' },
    });
  });

  it.each([
    { first: version, isCalled: true },
    { first: { jsonrpc: '2.0', id: 9, method: 'prompts/list' }, isCalled: false },
  ])('tells who opens the rest whether a call waits: $isCalled', async ({ first, isCalled }) => {
    const talked = await talk([greeting(), initialized, first], true);
    expect(await talked.end()).toMatchObject({ opened: 1, isCalled, errors: [] });
  });

  it('goes on where what the first call needs can not be loaded ahead', async () => {
    const { host, instructions } = running.product;
    const [input, output] = [new PassThrough(), new PassThrough()];
    const warmed = Promise.withResolvers<void>();
    const warm = async () => {
      warmed.resolve();
      throw new Error('no such file');
    };
    const principal = { owner: 'local', root: project.root };
    const open = async () => ({ host, instructions, version: '7', principal, clock: realClock() });
    const early = createEarlyAnswers({ listings: host.list(), instructions, version: '7' });
    const served = openStdio(open, { input, output, early, warm, maxBytes: 100_000 }, () => undefined);
    let text = '';
    output.on('data', piece => {
      text += piece;
    });
    input.write(`${JSON.stringify(greeting())}\n${JSON.stringify(initialized)}\n${JSON.stringify(list(2))}\n`);
    await warmed.promise;
    await turn();
    input.end(`${JSON.stringify(version)}\n`);
    await served.closed;
    await served.close();
    expect(text).toContain('"isError":false');
  });
});
