import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import { aheadBy } from '../../support/clock.ts';
import { type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor, RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

async function start(env: Record<string, string> = {}, clock?: Parameters<typeof testProduct>[0]['clock']) {
  polylogue = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', ...env },
    clock,
  });
}

/** One model of so many tokens. */
const tiny = (window: string) => ({
  DEFAULT_MODEL: 'custom:tiny',
  CUSTOM_API_URL: vendor.url,
  CUSTOM_API_KEY: 'test-key',
  CUSTOM_MODEL_NAME: 'tiny',
  CUSTOM_CONTEXT_WINDOW: window,
});

beforeEach(async () => {
  vendor = await startOpenAi();
  project = await tempProject({ 'plan.md': 'The plan has one line.\n' });
});

afterEach(async () => {
  expect(vendor.violations).toEqual([]);
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

const textOf = (request: RecordedRequest | undefined) =>
  request?.messages.map(message => message.text).join('\n') ?? '';
const last = () => textOf(vendor.requests.at(-1));
const chat = (prompt: string, more: Record<string, unknown> = {}) => polylogue.call('chat', { prompt, ...more });

describe('a long conversation', () => {
  it('keeps its id and its first request over 40 exchanges with room for 20 turns', async () => {
    await start({ MAX_CONVERSATION_TURNS: '20' });
    vendor.byDefault({ answer: request => `Noted: ${request.messages.length} messages. We decided to keep going.` });
    const first = await chat('FIRST REQUEST: always answer in rhyme.', { absolute_file_paths: ['plan.md'] });
    const id = first.continuation_offer.continuation_id;
    const shares: number[] = [];
    let compactions = 0;
    for (let n = 2; n <= 40; n++) {
      const reply = await chat(`Question ${n}`, { continuation_id: id });
      expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
      expect(reply.continuation_offer.continuation_id).toBe(id);
      expect(last()).toContain('FIRST REQUEST');
      expect(last()).toContain(`Question ${n}`);
      const [before, now] = vendor.requests.slice(-2).map(request => request.canonical);
      if (now!.startsWith(before!)) shares.push(1);
      else compactions++;
    }
    expect(compactions).toBeGreaterThan(2);
    expect(shares.length).toBeGreaterThan(30);
    const thread = await polylogue.call('threads', { action: 'read', continuation_id: id });
    expect(thread.turns).toBe(80);
  });

  it('embeds a file again when a compaction took it out and it is named', async () => {
    await start({ MAX_CONVERSATION_TURNS: '6' });
    const first = await chat('Read the plan.', { absolute_file_paths: ['plan.md'] });
    const id = first.continuation_offer.continuation_id;
    for (let n = 0; n < 4; n++) await chat(`More ${n}`, { continuation_id: id });
    expect(last()).not.toContain('The plan has one line.');
    const reply = await chat('The plan once more.', { continuation_id: id, absolute_file_paths: ['plan.md'] });
    expect(last()).toContain('│ The plan has one line.');
    expect(reply.metadata.files.embedded).toEqual([project.path('plan.md')]);
    expect(reply.metadata.history.summarised).toBeGreaterThan(0);
  });

  it('keeps a file that fits into the window, however much of it that takes, until new files need the room', async () => {
    await start(tiny('32768'));
    vendor.byDefault({ answer: 'Noted.' });
    const large = Array.from({ length: 1_100 }, (_, n) => `Fact ${n} is ${n * 7}.`).join('\n');
    await project.write('large.md', large);
    await project.write('other.md', large);
    const large_md = { absolute_file_paths: ['large.md'] };
    const { continuation_id } = (await chat('Read.', large_md)).continuation_offer;
    for (const more of [{}, large_md]) {
      const reply = await chat('And now?', { continuation_id, ...more });
      expect(reply.metadata.history).toMatchObject({ summarised: 0 });
      expect(last().split('│ Fact 1099 is 7693.')).toHaveLength(2);
    }
    const reply = await chat('And this?', { continuation_id, absolute_file_paths: ['other.md'] });
    expect(reply.metadata.history).toMatchObject({ trimmed: 1 });
    expect(reply.metadata.files.embedded).toEqual([project.path('other.md')]);
  });

  it('trims an answer that is too long in its middle instead of dropping it', async () => {
    await start(tiny('8192'));
    const long = Array.from({ length: 900 }, (_, n) => `Line ${n} of a long answer.`).join('\n');
    vendor.byDefault({ answer: 'short' });
    vendor.script({ answer: long });
    const first = await chat('Tell me everything.');
    // What the long question leaves does not hold the answer.
    const question = 'And what comes now? '.repeat(400);
    const reply = await chat(question, { continuation_id: first.continuation_offer.continuation_id });
    expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
    expect(last()).toContain('Line 0 of a long answer.');
    expect(last()).toContain('characters left out');
    expect(last()).toContain('Tell me everything.');
    expect(vendor.requests.at(-1)!.tokens).toBeLessThan(8_192);
  });
});

describe('continuation_id', () => {
  it('is refused when it is malformed, unknown or deleted, each in its own words', async () => {
    await start();
    const first = await chat('One.');
    const id = first.continuation_offer.continuation_id;
    expect((await chat('?', { continuation_id: 'thread-1' })).error).toMatchObject({ code: 'INVALID_INPUT_FORMAT' });
    expect((await chat('?', { continuation_id: randomUUID() })).error).toMatchObject({ code: 'THREAD_NOT_FOUND' });
    await polylogue.call('threads', { action: 'delete', continuation_id: id, confirm: true });
    const gone = await chat('?', { continuation_id: id });
    expect(gone.error).toMatchObject({ code: 'THREAD_NOT_FOUND' });
    expect(gone.error.message).toContain('deleted');
    expect(vendor.requests).toHaveLength(1);
  });

  it('is refused as expired when its time is over', async () => {
    let ahead = 0;
    const { clock } = systemEnvironment();
    await start(
      { CONVERSATION_TIMEOUT_HOURS: '1' },
      aheadBy(clock, () => ahead),
    );
    const first = await chat('One.');
    ahead = 3_600_001;
    const late = await chat('Two.', { continuation_id: first.continuation_offer.continuation_id });
    expect(late.error).toMatchObject({ code: 'THREAD_EXPIRED' });
  });

  it('does not expire while a call of its own runs', async () => {
    let ahead = 0;
    const { clock } = systemEnvironment();
    await start(
      { CONVERSATION_TIMEOUT_HOURS: '0.01' },
      aheadBy(clock, () => ahead),
    );
    const { promise, resolve } = Promise.withResolvers<void>();
    vendor.script({ answer: 'Late.', when: promise });
    const replied = chat('One.');
    await expect.poll(() => vendor.requests.length).toBe(1);
    ahead = 60_000;
    resolve();
    const { metadata, continuation_offer } = await replied;
    expect(metadata.warnings ?? []).not.toContainEqual(expect.stringContaining('not_persisted'));
    expect(Date.parse(continuation_offer.expires_at)).toBeLessThan(Date.now() + ahead + 37_000);
  });

  it('takes "last" for the newest thread of the project, also after a restart', async () => {
    await start();
    expect((await chat('?', { continuation_id: 'last' })).error).toMatchObject({ code: 'THREAD_NOT_FOUND' });
    await chat('Older.');
    const newer = await chat('Newer.');
    await polylogue.restart();
    const reply = await chat('Go on.', { continuation_id: 'last' });
    expect(reply.continuation_offer.continuation_id).toBe(newer.continuation_offer.continuation_id);
    expect(last()).toContain('Newer.');
  });

  it('does not reach another owner’s thread', async () => {
    await start();
    const first = await chat('Mine.');
    const id = first.continuation_offer.continuation_id;
    const stranger = await polylogue.call('chat', { prompt: 'Yours?', continuation_id: id }, { owner: 'somebody' });
    expect(stranger.error).toMatchObject({ code: 'THREAD_NOT_FOUND' });
    const list = await polylogue.call('threads', { action: 'list', everywhere: true }, { owner: 'somebody' });
    expect(list.threads).toEqual([]);
  });

  it('leads a fork on from the turn it was forked at', async () => {
    await start();
    const first = await chat('Root question.');
    const id = first.continuation_offer.continuation_id;
    await chat('Left branch.', { continuation_id: id });
    const fork = await polylogue.call('threads', { action: 'fork', continuation_id: id, turn: 2 });
    const reply = await chat('Right branch.', { continuation_id: fork.continuation_id });
    expect(last()).toContain('Root question.');
    expect(last()).not.toContain('Left branch.');
    const again = await chat('Further right.', { continuation_id: reply.continuation_offer.continuation_id });
    expect(again.isError).toBe(false);
    expect(vendor.requests.at(-1)!.canonical.startsWith(vendor.requests.at(-2)!.canonical)).toBe(true);
  });

  it('says in a fork which turns went with its original', async () => {
    await start();
    const first = await chat('Root question.');
    const { continuation_id } = first.continuation_offer;
    const fork = await polylogue.call('threads', { action: 'fork', continuation_id });
    const id = { continuation_id: fork.continuation_id };
    expect((await chat('Aside.', id)).metadata.warnings).toBeUndefined();
    expect((await polylogue.call('threads', { action: 'read', ...id })).note).toBeUndefined();
    await polylogue.call('threads', { action: 'delete', continuation_id, confirm: true });
    const lost = 'Turns 1 to 2 of this thread are gone with the one that it was forked off.';
    expect((await chat('And now?', id)).metadata.warnings).toEqual([lost]);
    expect((await polylogue.call('threads', { action: 'read', ...id })).note).toBe(lost);
  });

  it('is forked at its last answer where the question after that failed', async () => {
    await start();
    vendor.script({ answer: 'Sure.' }, { fault: 'status', status: 400 }, { fault: 'status', status: 400 });
    const first = await chat('Root question.');
    const continuation_id = first.continuation_offer.continuation_id;
    expect((await chat('Too much.', { continuation_id })).isError).toBe(true);
    const fork = await polylogue.call('threads', { action: 'fork', continuation_id });
    expect(fork).toMatchObject({ status: 'success', forked_from: { continuation_id, turn: 2 } });
    const unanswered = await chat('Alone.');
    expect(unanswered.isError).toBe(true);
    const refused = await polylogue.call('threads', { action: 'fork', continuation_id: 'last' });
    expect(refused.error.message).toMatch(/^This thread has no answer yet/);
  });

  it('continues where a turn was damaged on the disk: reply, reading, list and export say which', async () => {
    await start();
    vendor.byDefault({ answer: 'Noted.' });
    const first = await chat('The wine is from Bordeaux.');
    const { continuation_id } = first.continuation_offer;
    await chat('The cheese is from Gouda.', { continuation_id });
    const db = new DatabaseSync(join(polylogue.home, 'threads.sqlite'));
    db.exec(
      "PRAGMA secure_delete = ON; UPDATE records SET body = replace(body, 'Bordeaux', 'Burgundy') WHERE kind = 'turn'",
    );
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    db.close();
    // What this process read before, it would not read again.
    await polylogue.restart();
    const reply = await chat('What goes with it?', { continuation_id });
    expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
    expect(reply.metadata.warnings).toEqual(['Damaged on the disk and lost: turn 1 of this thread.']);
    expect(last()).toContain('[Turn 1 of this thread was damaged on the disk and is lost.');
    expect(last()).toContain('The cheese is from Gouda.');
    const read = await polylogue.call('threads', { action: 'read', continuation_id });
    expect(JSON.stringify(read)).toContain('Turn 1 of this thread was damaged');
    expect(JSON.stringify(read)).not.toContain('Burgundy');
    const { pieces } = await polylogue.product.transfer.export(
      continuation_id,
      { owner: 'local', workspace: project.root },
      'md',
    );
    let exported = '';
    for await (const piece of pieces) exported += piece;
    expect(exported).toContain('Turn 1 of this thread was damaged');
  });
});
