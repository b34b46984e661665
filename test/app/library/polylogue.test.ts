import { describe, expect, it } from 'vitest';
import { createProduct } from '../../../src/app/app.ts';
import { loadAppConfig } from '../../../src/app/settings.ts';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import type { Clock } from '../../../src/core/ports.ts';
import { chatVendor, createMemoryStore, defineStore, defineTool, z } from '../../../src/index.ts';
import { gitRepository } from '../../support/git-repository.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { libraryRig } from './library-rig.ts';

const rig = libraryRig();
const finding = {
  can_tell: true,
  summary: 'It fails.',
  root_cause: 'One is not two.',
  evidence: [{ file: 'src/a.ts', line: 1, text: 'export const one = 1;' }],
  impact: 'All.',
  recommendation: 'Mend it.',
};
const patch = '--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1 +1 @@\n-export const one = 1;\n+export const one = 2;\n';
const stderr = 'src/a.ts:1\nError: one is not two';

describe('a Polylogue of a program', () => {
  it('lists the models that it may ask', async () => {
    const { listModels } = await rig.open();
    const models = await listModels();
    expect(models.map(({ name }) => name)).toContain('openai:gpt-5-mini');
    expect(new Set(models.map(({ provider }) => provider))).toEqual(new Set(['openai']));
    const priced = models.findIndex(({ price }) => price);
    const { in: rate } = models[priced]!.price!;
    models[priced]!.price!.in = 0;
    expect((await listModels())[priced]?.price?.in).toBe(rate);
  });

  it('lists what a vendor of the program alone offers, of which nothing is known', async () => {
    const docs = { endpoint: '/chat/completions', quirks: [], source: 'https://acme.example/docs' };
    const names = { id: 'acme', names: ['ac'], title: 'Acme', env: 'ACME' };
    const vendor = await startOpenAi({ models: [{ id: 'acme-1' }] });
    const acme = chatVendor({ ...names, baseUrl: vendor.url, docs });
    const settings = { OPENAI_API_KEY: '', DEFAULT_MODEL: 'auto', ACME_API_KEY: 'test-key' };
    const { listModels } = await rig.open({ providers: [acme], settings });
    expect((await listModels()).map(({ name }) => name)).toEqual(['acme:acme-1']);
    await vendor.close();
  });

  it('sums up a file, and a discussion that another conversation goes on with', async () => {
    const { summarizeFile, compressDiscussion, createConversation } = await rig.open();
    rig.vendor().script({ answer: 'Two constants.' }, { answer: 'SHORT.' });
    expect(await summarizeFile('src/a.ts', { maxWords: 20 })).toMatchObject({ summary: 'Two constants.' });
    expect(rig.asked()).toContain('at most 20 words');
    const { history, summary } = await compressDiscussion('a long talk');
    expect(summary).toBe('SHORT.');
    const conversation = createConversation({ history });
    await conversation.send('Go on.');
    expect(rig.asked()).toMatch(/SHORT\.[\s\S]*Go on\./);
    const asked = rig.vendor().requests.length;
    for (const path of ['none.ts', '.env', 'src'])
      await expect(summarizeFile(path)).rejects.toMatchObject({ kind: 'input', message: /^Cannot read .+: / });
    expect(rig.vendor().requests).toHaveLength(asked);
  });

  it('says of a call whose store is not open yet that it was closed', async () => {
    const { callTool, cleanup } = await rig.open();
    const call = expect(callTool('chat', { prompt: 'early' })).rejects.toThrow(
      'This Polylogue was closed by cleanup().',
    );
    await cleanup();
    await call;
  });

  it('sums up without what a program wants for its answers', async () => {
    const { summarizeFile, setDefaults } = await rig.open();
    const retrieve = () => ['PASSAGE'];
    setDefaults({ model: 'gpt-5-nano', system: { custom: 'PIRATE' }, onQuestion: () => 'x', rag: { retrieve } });
    await summarizeFile('src/a.ts');
    expect(rig.asked()).not.toMatch(/PIRATE|PASSAGE/);
    expect(rig.vendor().requests.at(-1)?.body).toMatchObject({ model: 'gpt-5-nano' });
    expect(rig.vendor().requests.at(-1)?.body).not.toHaveProperty('tools');
  });

  it('analyses an error, and makes a patch that git takes or says why not', async () => {
    const repo = await gitRepository(rig.project().root);
    await repo.commit();
    const { analyzeError, generatePatch } = await rig.open();
    const says = (more: object) => rig.vendor().script({ answer: JSON.stringify({ ...finding, ...more }) });
    says({});
    expect(await analyzeError({ stderr })).toMatchObject({
      canTell: true,
      rootCause: 'One is not two.',
      evidence: [{ file: 'src/a.ts', line: 1, checked: true }],
    });
    says({ can_tell: false, needs: ['the log'] });
    expect(await analyzeError({ stderr })).toMatchObject({ canTell: false, rootCause: '', needs: ['the log'] });
    says({ patch });
    const made = await generatePatch({ stderr });
    expect(made.patch).toMatchObject({
      diff: expect.stringContaining('+export const one = 2;'),
      files: [{ path: 'src/a.ts' }],
    });
    says({ patch: patch.replace('const one = 1', 'const ten = 1') });
    expect(await generatePatch({ stderr })).toMatchObject({ withheld: expect.stringContaining('not there') });
    expect(await repo.git('status', '--porcelain')).toBe('');
  });

  it.each<[what: string, run: () => unknown, why: string]>([
    ['throws', () => Promise.reject(new RangeError('no room')), 'no room'],
    ['throws what is no error', () => Promise.reject('no room'), 'no room'],
    ['returns a text', () => 'a text', 'its "run" has to return an object'],
    ['returns a list', async () => [1, 2], 'its "run" has to return an object'],
    ['returns nothing', () => undefined, 'its "run" has to return an object'],
    ['returns what JSON cannot say', async () => ({ n: 5n }), 'BigInt'],
  ])('tells of its own tool, and of no error in Polylogue, where that %s', async (_what, run, why) => {
    const lines: string[] = [];
    const own = { name: 'own', title: 'Own', description: 'Do it.', toolset: 'ops', tier: 'user', fields: {} } as const;
    const effects = { writes: false, destroys: false, network: false, idempotent: true };
    const made = defineTool({ ...own, effects, mode: { kind: 'action', run: async () => ({}) } });
    // A program without types may return anything.
    Object.assign(made.mode, { run });
    const { callTool } = await rig.open({ tools: [made], log: line => lines.push(line) });
    const failed = await callTool('own', {}).catch((error: unknown) => error);
    expect(failed).toMatchObject({ kind: 'bug', message: expect.stringContaining('The tool "own" failed: ') });
    expect(failed).toMatchObject({ message: expect.stringContaining(why), details: { class: 'tool' } });
    expect(String(failed)).not.toContain('Polylogue (');
    await waitUntil('the log says why', () => lines.some(line => line.includes(why)));
  });

  it('calls tools, its own too, and throws what they fail with', async () => {
    const twice = defineTool({
      name: 'twice',
      title: 'Twice',
      description: 'Say it twice.',
      toolset: 'ops',
      tier: 'user',
      effects: { writes: false, destroys: false, network: false, idempotent: true },
      fields: { text: z.string().min(1) },
      mode: { kind: 'action', run: async ({ text }) => ({ status: 'success', said: text + text }) },
    });
    const { callTool } = await rig.open({ tools: [twice] });
    expect(await callTool('twice', { text: 'ab' })).toMatchObject({ said: 'abab' });
    await expect(callTool('twice', {})).rejects.toMatchObject({
      kind: 'input',
      details: { code: 'MISSING_PARAMETER', validationErrors: [{ field: 'text' }] },
    });
    rig.vendor().script({ fault: 'status', status: 400 });
    await expect(callTool('chat', { prompt: 'x' })).rejects.toMatchObject({
      kind: 'model',
      details: { provider: 'openai', model: 'gpt-5-mini', status: 400, attempt: 1, next: expect.any(String) },
    });
    await expect(callTool('thrice', {})).rejects.toMatchObject({ details: { code: 'TOOL_NOT_FOUND' } });
  });

  it('goes on when functions that watch it fail, in whatever way', async () => {
    const warned: string[] = [];
    const listen = ({ message }: Error) => void warned.push(message);
    process.on('warning', listen);
    const fails = [
      () => {
        throw new Error('thrown');
      },
      async () => Promise.reject(new Error('rejected')),
    ];
    for (const fail of fails) {
      const { callTool } = await rig.open({ log: fail, settings: { LOG_LEVEL: 'debug' } });
      const watch = { onText: fail, onProgress: fail };
      expect(await callTool('chat', { prompt: 'Hi.' }, watch)).toMatchObject({ status: 'continuation_available' });
    }
    await expect.poll(() => new Set(warned)).toEqual(new Set(['thrown', 'rejected']));
    process.off('warning', listen);
  });

  it('reads and clears what was said to models, where that is kept', async () => {
    const { send, commsLog } = await rig.open({ settings: { COMMS_LOG: 'on' } });
    await send({ message: 'for the record' });
    expect(await commsLog.read()).toHaveLength(1);
    expect((await commsLog.read({ tool: 'send' }))[0]).toMatchObject({ provider: 'openai', tool: 'send' });
    await commsLog.append({ payload: { a: 1 }, tool: undefined, model: undefined, kind: undefined });
    expect((await commsLog.read({ limit: 1 }))[0]).toMatchObject({ tool: 'library', provider: 'library' });
    expect((await commsLog.read({ limit: undefined, tool: undefined })).length).toBe(2);
    await commsLog.clear();
    expect(await commsLog.read()).toEqual([]);
    const passing = await rig.open({ settings: { POLYLOGUE_PRIVATE: 'on' } });
    await expect(passing.commsLog.read()).rejects.toMatchObject({ kind: 'config' });
  });

  it('depends on nothing but what it was given, and ends what is under way when it is closed', async () => {
    const polylogue = await rig.open();
    rig.vendor().script({ fault: 'hang_before_headers' });
    const sent = polylogue.send({ message: 'x' });
    const failed = expect(sent).rejects.toThrow();
    await expect.poll(() => rig.vendor().requests.length).toBe(1);
    await polylogue.cleanup();
    await failed;
    await expect(polylogue.send({ message: 'y' })).rejects.toThrow();
  });

  it('is closed though a store fails when it is closed', async () => {
    const lines: string[] = [];
    const close = async () => Promise.reject(new Error('no close'));
    const mine = defineStore({ name: 'mine', open: () => ({ ...createMemoryStore(), close }) });
    const settings = { POLYLOGUE_STORE: 'mine' };
    const { callTool, cleanup } = await rig.open({ stores: [mine], settings, log: line => void lines.push(line) });
    await callTool('chat', { prompt: 'x' });
    await cleanup();
    expect(lines.join()).toContain('no close');
  });

  it('is closed though a store hangs when it is closed', async () => {
    const lines: string[] = [];
    const close = () => new Promise<never>(() => {});
    const mine = defineStore({ name: 'mine', open: () => ({ ...createMemoryStore(), close }) });
    const machine = { ...systemEnvironment(), cwd: rig.project().root, writeError: (line: string) => lines.push(line) };
    // The twelve seconds of the close pass at once; `cleanup` of a library closes its product like this.
    const sleep: Clock['sleep'] = (ms, signal) => machine.clock.sleep(ms === 12_000 ? 1 : ms, signal);
    const env = { POLYLOGUE_STORE: 'mine', POLYLOGUE_HOME: rig.project().path('.home'), OFFLINE: 'on' };
    const sources = { ...machine, env, argvFlags: {}, readFile: () => undefined };
    const { config, extensions } = await loadAppConfig(sources, { stores: [mine] });
    const product = await createProduct(config, { ...machine, clock: { ...machine.clock, sleep }, extensions });
    const principal = { owner: 'local', root: product.root, client: 'test' };
    const call = { name: 'chat', arguments: { prompt: 'x' }, principal };
    expect(await product.host.call(call, new AbortController().signal)).toMatchObject({ isError: false });
    await product.close();
    expect(lines.join()).toContain('Closing did not end within 12 s');
  });

  it('tells of settings that it can not use', async () => {
    await expect(rig.open({ settings: { MAX_NAMED_FILES: 'many' } })).rejects.toMatchObject({ kind: 'config' });
    await expect(rig.open({ stores: [{ name: 'sqlite', open: () => expect.unreachable() }] })).rejects.toMatchObject({
      kind: 'config',
    });
  });
});
