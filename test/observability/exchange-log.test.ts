import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { ExchangeNote } from '../../src/core/ports.ts';
import {
  createExchangeLog,
  createExchangeReader,
  type ExchangeLogParts,
} from '../../src/observability/exchange-log.ts';
import { createMask } from '../../src/observability/secret-masking.ts';
import { canaries } from '../support/canaries.ts';
import { manualClock } from '../support/clock.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const projects: TempProject[] = [];
afterEach(async () => {
  await Promise.all(projects.splice(0).map(project => project.dispose()));
});

const megabyte = 1024 * 1024;

async function logOf({ maxBytes = 10 * megabyte, keys = [] }: { maxBytes?: number; keys?: string[] } = {}) {
  const project = await tempProject();
  projects.push(project);
  const folder = project.path('logs');
  const clock = manualClock();
  const problems: string[] = [];
  const parts: ExchangeLogParts = {
    folder,
    maxBytes,
    clock,
    secrets: createMask({ secret: 'pepper', keys }),
    onError: (name, error) => void problems.push(`${name}: ${String(error)}`),
  };
  const log = createExchangeLog(parts);
  return {
    folder,
    clock,
    problems,
    parts,
    tell: log.log,
    close: () => log.close(),
    reader: createExchangeReader(folder),
    text: () => readFile(join(folder, 'comms.jsonl'), 'utf8'),
    sides: () => readdir(join(folder, 'comms')).catch(() => []),
  };
}

const note = (exchange: string, rest: Partial<ExchangeNote> = {}): ExchangeNote => ({
  reqId: 'r1',
  exchange,
  direction: 'out',
  kind: 'request',
  tool: 'chat',
  provider: 'openai',
  model: 'm',
  payload: { messages: [{ role: 'user', section: 'turn', parts: [{ type: 'text', text: `Question ${exchange}?` }] }] },
  ...rest,
});
const reply = (exchange: string, payload: object = { text: 'Yes.', elapsedMs: 7 }): ExchangeNote =>
  note(exchange, { direction: 'in', kind: 'response', payload });

/** All bytes that the log takes on disk. */
async function sizeOf(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(folder, { recursive: true })) {
    const found = await stat(join(folder, name));
    if (found.isFile()) bytes += found.size;
  }
  return bytes;
}

describe('the comms log', () => {
  it('keeps a line for what was asked and one for what came, the names of the payload as they were', async () => {
    const { tell, close, text } = await logOf();
    tell(note('e1', { payload: { maxOutputTokens: 5, providerOptions: { openai: { promptCacheKey: 'k' } } } }));
    tell(reply('e1'));
    await close();
    const lines = (await text()).trimEnd().split('\n');
    const about = {
      ts: '2027-01-15T08:00:00.000Z',
      req_id: 'r1',
      exchange: 'e1',
      tool: 'chat',
      provider: 'openai',
      model: 'm',
    };
    expect(lines.map(line => JSON.parse(line))).toEqual([
      {
        ...about,
        direction: 'out',
        kind: 'request',
        payload: { maxOutputTokens: 5, providerOptions: { openai: { promptCacheKey: 'k' } } },
      },
      { ...about, direction: 'in', kind: 'response', payload: { text: 'Yes.', elapsedMs: 7 } },
    ]);
  });

  it('puts a long text into a side file once, however often it comes, and bytes too; the reader puts them back', async () => {
    const { tell, close, text, sides, reader } = await logOf();
    const long = 'A sentence of a file. '.repeat(1_000);
    const data = new Uint8Array([0, 255, 7]);
    for (const exchange of ['e1', 'e2', 'e3']) {
      tell(note(exchange, { payload: { messages: [long, { type: 'image', mediaType: 'image/png', data }] } }));
    }
    await close();
    expect(await text()).not.toContain('A sentence of a file.');
    expect(await sides()).toHaveLength(2);
    const found = await reader.find('e2');
    expect(found?.lines[0]?.payload).toEqual({ messages: [long, { type: 'image', mediaType: 'image/png', data }] });
  });

  it('is readable by its owner only', async () => {
    const { tell, close, folder, sides } = await logOf();
    tell(note('e1', { payload: { text: 'x'.repeat(5_000) } }));
    await close();
    const [side = ''] = await sides();
    for (const [name, mode] of [
      ['comms.jsonl', 0o600],
      ['comms', 0o700],
      [`comms/${side}`, 0o600],
    ] as const) {
      expect((await stat(join(folder, name))).mode & 0o777, name).toBe(mode);
    }
  });

  it('holds no secret, in lines, names and side files', async () => {
    const { tell, close, folder } = await logOf({ keys: ['OPERATORCANARY'] });
    for (const [index, [text]] of canaries.entries()) {
      const filler = 'Nothing to see here. '.repeat(300);
      const error = Object.assign(new Error(text), {
        cause: new Error(`${text} ${filler}`),
        requestHeaders: { note: text },
      });
      const payload = {
        text,
        [text]: 1,
        long: `${filler}${text}\n${filler}`,
        headers: { Authorization: 'Basic abc' },
        error,
      };
      tell(note(`e${index}`, { payload, model: `${'m'.repeat(300)} ${text}`, tool: text }));
    }
    await close();
    const names = await readdir(folder, { recursive: true });
    const files = names.filter(name => /\.(jsonl|txt)$/.test(name));
    expect(files.length).toBeGreaterThan(canaries.length);
    const all = (await Promise.all(files.map(name => readFile(join(folder, name), 'utf8')))).join('\n');
    expect(all).toContain('[masked:');
    expect(all).not.toContain('Basic abc');
    for (const [, secret] of canaries) expect(all.includes(secret), secret).toBe(false);
  });

  it('stays within its bytes; what was needed lately stays, what no line refers to goes', async () => {
    const maxBytes = 200_000;
    const { tell, close, folder, clock, reader } = await logOf({ maxBytes });
    const lasting = `lasting ${'l'.repeat(5_000)}`;
    for (let index = 0; index < 150; index++) {
      await clock.advance(1_000);
      tell(note(`e${index}`, { payload: { text: `${index} ${'x'.repeat(6_000)}`, lasting, note: 'n'.repeat(600) } }));
      await close();
    }
    expect(await sizeOf(folder)).toBeLessThan(maxBytes * 1.1);
    const newest = await reader.find('e149');
    expect(newest?.lines[0]?.payload).toMatchObject({ text: `149 ${'x'.repeat(6_000)}`, lasting });
    const oldest = (await reader.list({ limit: 1_000 })).at(-1)?.exchange ?? '';
    expect((await reader.find(oldest))?.lines[0]?.payload).toMatchObject({
      text: { missing: expect.stringMatching(/^600\d bytes that are no longer kept$/) },
      lasting,
    });
  });

  it('leaves out what comes faster than it can be written, and says so', async () => {
    const { tell, close, problems, reader } = await logOf({ maxBytes: 400 * megabyte });
    const payload = { bytes: new Uint8Array(30 * megabyte) };
    for (const exchange of ['e1', 'e2', 'e3', 'e4']) tell(note(exchange, { payload }));
    await close();
    expect((await reader.list({ limit: 10 })).map(({ exchange }) => exchange)).toEqual(['e2', 'e1']);
    expect(problems).toEqual(['comms log: Error: 2 records were left out: writing was too slow']);
  });

  it('goes on after its folder was removed, and after one that could not be written', async () => {
    const { tell, close, folder, reader, problems } = await logOf();
    tell(note('e1', { payload: { text: 'x'.repeat(5_000) } }));
    await close();
    await rm(folder, { recursive: true });
    // A file where the folder belongs: nothing can be made below it, whoever tries.
    await writeFile(folder, '');
    tell(note('e2', { payload: { text: 'x'.repeat(5_000) } }));
    tell(note('e3'));
    await close();
    expect(problems).toEqual([expect.stringMatching(/^comms log: .*(ENOTDIR|EEXIST)/)]);
    await rm(folder);
    tell(note('e4', { payload: { text: 'x'.repeat(5_000) } }));
    await close();
    expect((await reader.find('e4'))?.lines[0]?.payload).toEqual({ text: 'x'.repeat(5_000) });
    expect(problems).toHaveLength(1);
  });
});

describe('reading the comms log', () => {
  it('lists exchanges, the newest first, whole ones also when they lie in two files', async () => {
    const { tell, close, clock, reader } = await logOf({ maxBytes: 4_000 });
    for (let index = 0; index < 6; index++) {
      await clock.advance(1_000);
      tell(note(`e${index}`, { reqId: `r${index % 2}`, tool: index === 3 ? 'debug' : 'chat' }));
      await close();
      tell({ ...reply(`e${index}`, { text: 'Yes.', elapsedMs: index }), reqId: `r${index % 2}` });
      await close();
    }
    const found = await reader.list({ limit: 2 });
    expect(
      found.map(({ exchange, outcome, elapsedMs, lines }) => [exchange, outcome, elapsedMs, lines.length]),
    ).toEqual([
      ['e5', 'ok', 5, 2],
      ['e4', 'ok', 4, 2],
    ]);
    expect((await reader.list({ limit: 9, tool: 'debug' })).map(({ exchange }) => exchange)).toEqual(['e3']);
    expect((await reader.list({ limit: 9, reqId: 'r1' })).map(({ exchange }) => exchange)).toEqual(['e5', 'e3', 'e1']);
  });

  it('knows what failed and what nobody answered', async () => {
    const { tell, close, reader } = await logOf();
    tell(note('e1'));
    tell(note('e1', { direction: 'in', kind: 'error', payload: { error: { code: 'API_ERROR' } } }));
    tell(note('e2'));
    await close();
    expect((await reader.list({ limit: 9 })).map(({ outcome }) => outcome)).toEqual(['open', 'error']);
    expect(await reader.find('nobody')).toBeUndefined();
  });

  it('reads no file that a line names which is no side file', async () => {
    const { folder, reader } = await logOf();
    const names = ['../../secret.txt', '/etc/passwd', `../${'a'.repeat(40)}.txt`, `${'a'.repeat(40)}.txt/../../x`];
    const lines = names.map(($part, index) =>
      JSON.stringify({
        ts: '2030-01-01',
        exchange: `e${index}`,
        direction: 'out',
        kind: 'request',
        payload: { $part: { $part, bytes: 3 } },
      }),
    );
    await mkdir(folder, { recursive: true });
    await writeFile(
      join(folder, 'comms.jsonl'),
      ['half a li', 'null', '[]', '{"exchange":7}', ...lines, ''].join('\n'),
    );
    expect(await reader.list({ limit: 9 })).toHaveLength(4);
    for (const [index, $part] of names.entries()) {
      expect((await reader.find(`e${index}`))?.lines[0]?.payload).toEqual({ $part: { $part, bytes: 3 } });
    }
  });

  it('is empty where nothing was kept, and after it was cleared', async () => {
    const { tell, close, folder, reader } = await logOf({ maxBytes: 5_000 });
    expect(await reader.list({ limit: 9 })).toEqual([]);
    await reader.clear();
    for (let index = 0; index < 9; index++) {
      tell(note(`e${index}`, { payload: { text: 'x'.repeat(600) } }));
      await close();
    }
    await reader.clear();
    expect(await readdir(folder)).toEqual([]);
  });
});
