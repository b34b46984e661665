import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ceilings, isOver, measureTools, standardTools } from '../../scripts/tokens/measure-tools.ts';

describe('measuring a tool list', () => {
  it('counts bytes and exact tokens of each tool and of the list', () => {
    const { tools, all } = measureTools([{ name: 'chat' }, { name: 'größe' }]);
    expect(tools).toEqual([
      { name: 'chat', bytes: 15, tokens: 5 },
      { name: 'größe', bytes: 18, tokens: 5 },
    ]);
    expect(all.bytes).toBe(36);
  });

  it('extrapolates what is there to all of core and code, and leaves other toolsets out', () => {
    const chat = { name: 'chat', description: 'x'.repeat(400) };
    const sizes = measureTools([chat, { name: 'clink', description: 'x'.repeat(4000) }]);
    expect(sizes.extrapolated.bytes).toBe(sizes.standard.bytes * standardTools.length);
    expect(sizes.standard.bytes).toBe(Buffer.byteLength(JSON.stringify([chat])));
    expect(sizes.missing).toHaveLength(standardTools.length - 1);
  });

  it('takes special tokens in a description for text', () => {
    expect(measureTools([{ name: '<|endoftext|>' }]).all.tokens).toBeGreaterThan(5);
  });

  it('holds both ceilings', () => {
    expect(isOver(ceilings)).toBe(false);
    expect(isOver({ ...ceilings, bytes: ceilings.bytes + 1 })).toBe(true);
    expect(isOver({ ...ceilings, tokens: ceilings.tokens + 1 })).toBe(true);
  });
});

it('finds at most 4,807 bytes of descriptions in all tools and fields, 5% fewer than the 5,060 of release 1.13.0', async () => {
  const { tools } = JSON.parse(await readFile('test/fixtures/catalogue.json', 'utf8'));
  const texts: string[] = [];
  JSON.stringify(tools, (key, value) => {
    if (key === 'description' && typeof value === 'string') texts.push(value);
    return value;
  });
  expect(texts.length).toBeGreaterThan(90);
  expect(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)).toBeLessThanOrEqual(4_807);
});

/** A server on stdio that speaks just enough of the protocol to list its tools. */
const serverSource = `
import { createInterface } from 'node:readline';
const size = Number(process.argv[1].match(/(\\d+)\\.mjs$/)[1]);
const tools = [{ name: 'chat', description: 'x y '.repeat(size), inputSchema: { type: 'object' } }];
createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line);
  const reply = answer => console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  if (id === undefined) return;
  if (method === 'initialize') {
    reply({ result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'small', version: '1' } } });
  } else if (method === 'tools/list') reply({ result: { tools } });
  else reply({ error: { code: -32601, message: 'unknown method' } });
});
`;

describe('the tokens command', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tokens-'));
    for (const size of [10, 9000]) await writeFile(join(folder, `server-${size}.mjs`), serverSource);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  function tokens(...args: string[]): Promise<{ code: number; output: string }> {
    return new Promise(resolve => {
      execFile(process.execPath, ['scripts/tokens.ts', ...args], (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
      );
    });
  }

  it('prints what a started server lists', async () => {
    const { code, output } = await tokens('--check', join(folder, 'server-10.mjs'));
    expect(output).toMatch(/^chat +\d+ +\d+$/m);
    expect(output).toMatch(/^core \+ code, 1 of 19 /m);
    expect(code).toBe(0);
  });

  it('fails above the ceiling only when it is asked to check', async () => {
    const server = join(folder, 'server-9000.mjs');
    expect((await tokens(server)).code).toBe(0);
    expect(await tokens('--check', server)).toMatchObject({
      code: 1,
      output: expect.stringContaining('ceiling: shorten'),
    });
  });

  it('says how to get a program that is not there', async () => {
    expect(await tokens('dist/nowhere.js')).toMatchObject({
      code: 1,
      output: expect.stringContaining('npm run build'),
    });
  });
});
