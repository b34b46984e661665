import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMask } from '../../../src/observability/secret-masking.ts';
import { createSandbox } from '../../../src/workspace/sandbox.ts';
import {
  createSearchIndexes,
  type SearchIndexes,
  type SearchIndexesOptions,
} from '../../../src/workspace/search-index/search-index.ts';
import { type ManualClock, manualClock } from '../../support/clock.ts';
import { httpEmbedder } from '../../support/http-embedder.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import { type FakeEmbeddings, startEmbeddings } from '../../support/vendors/start-embeddings.ts';

const secret = 'sk-SECRET-1234';
const files = {
  'src/parcel.ts': `import { post } from './post.ts';

/** Sends a parcel and tells the customer. */
export function shipParcel(address: string) {
  return post(address, 'token ${secret}');
}

export class ParcelTracker {
  locate(id: string) {
    return id;
  }
}
`,
  'src/refund.ts': 'export function refundPayment(order: string) {\n  return order;\n}\n',
  'docs/guide.md': '# Guide\n\nHow to begin.\n\n## Refunds\n\nMoney goes back within three days.\n',
  '.env': 'TOKEN=refundPayment\n',
  '.gitignore': 'ignored.ts\n',
  'ignored.ts': 'export const refundPayment = 1;\n',
  'test/refund.test.ts': 'refundPayment("a");\n',
};

let project: TempProject;
let folder: string;
let clock: ManualClock;
let indexes: SearchIndexes;
const { signal } = new AbortController();
const open = (more: Partial<SearchIndexesOptions> = {}) =>
  createSearchIndexes({
    folder,
    sandbox: createSandbox({ roots: [project.root], allowSecrets: false }),
    mask: async text => ({ text: text.replaceAll(secret, '[masked]'), found: {} }),
    clock,
    ...more,
  });
const refresh = async (more = {}) => (await indexes.of(project.root)).refresh({ signal, ...more });
const search = async (question: string, limit = 5) => {
  const hits = await (await indexes.of(project.root)).search(question, limit, signal);
  return hits.map(({ path, from, to }) => `${path.slice(project.root.length + 1)}:${from}-${to}`);
};
const databases = () => readdirSync(folder).filter(name => name.endsWith('.sqlite'));

beforeEach(async () => {
  project = await tempProject(files);
  folder = await mkdtemp(join(tmpdir(), 'polylogue-index-'));
  clock = manualClock();
  indexes = open();
});

afterEach(async () => {
  await indexes.close();
  await project.dispose();
  await rm(folder, { recursive: true, force: true });
});

describe('the index of a project with several roots', () => {
  it('finds places in all of them, and in nothing that is only read where it is named', async () => {
    const other = await tempProject({ 'lib/returns.ts': 'export function refundPayment2() {}\n' });
    const named = await tempProject({ 'named.ts': 'export const refundPayment = 2;\n' });
    const inner = project.path('src');
    const roots = [project.root, inner, other.root, named.root, project.path('.env'), project.path('not-there')];
    const sandbox = createSandbox({ roots, named: [named.root], allowSecrets: false });
    await indexes.close();
    indexes = open({ sandbox });
    const index = await indexes.of(project.root);
    expect(await index.refresh({ signal })).toMatchObject({ files: 6, indexed: 6 });
    const hits = await index.search('refundPayment', 20, signal);
    expect(hits.map(({ path }) => path)).toEqual(
      expect.arrayContaining([project.path('src/refund.ts'), other.path('lib/returns.ts')]),
    );
    expect(hits.map(({ path }) => path)).not.toContain(named.path('named.ts'));
    expect(await index.search('refundPayment', 1, signal)).toHaveLength(1);
    await Promise.all([other.dispose(), named.dispose()]);
  });

  it('shows the places that speak of a question before those that have its usual words, whichever root has them', async () => {
    const usual = Array.from(
      { length: 30 },
      (_, at) => [`usual/${at}.ts`, `export class Order${at} { save() {} }\n`] as const,
    );
    const near = { 'near/ledger.ts': 'export class LedgerReconciliation { save() {} }\n' };
    const [crowd, one] = await Promise.all([tempProject(Object.fromEntries(usual)), tempProject(near)]);
    const sandbox = createSandbox({ roots: [crowd.root, one.root], allowSecrets: false });
    await indexes.close();
    indexes = open({ sandbox });
    for (const root of [crowd.root, one.root]) {
      const index = await indexes.of(root);
      await index.refresh({ signal });
      const [first, second] = await index.search('class LedgerReconciliation save', 5, signal);
      expect(first?.path).toBe(one.path('near/ledger.ts'));
      expect(second?.path).toContain(crowd.root);
    }
    await Promise.all([crowd.dispose(), one.dispose()]);
  });

  it('answers from the others where the index of one cannot be used, and says so', async () => {
    const other = await tempProject({ 'lib/returns.ts': 'export function refundPayment2() {}\n' });
    const sandbox = createSandbox({ roots: [project.root, other.root], allowSecrets: false });
    await refresh();
    await indexes.close();
    const [name = ''] = databases();
    rmSync(join(folder, name));
    mkdirSync(join(folder, name));
    indexes = open({ sandbox });
    const index = await indexes.of(project.root);
    const { files: count, warning } = await index.refresh({ signal });
    expect(count).toBe(1);
    expect(warning).toContain(`${project.root} is not searched: The search index cannot be used: `);
    const hits = await index.search('refundPayment', 20, signal);
    expect(hits.map(({ path }) => path)).toEqual([other.path('lib/returns.ts')]);
    await expect(refresh()).resolves.toMatchObject({ files: 1 });
    rmSync(join(folder, name), { recursive: true });
    expect(await index.refresh({ signal })).not.toHaveProperty('warning');
    expect(await index.search('refundPayment', 20, signal)).toHaveLength(4);
    await other.dispose();
  });

  it('answers from the others where the index of one breaks after it was brought up to date, and says so', async () => {
    const other = await tempProject({ 'lib/returns.ts': 'export function refundPayment2() {}\n' });
    const sandbox = createSandbox({ roots: [project.root, other.root], allowSecrets: false });
    await refresh();
    await indexes.close();
    const [name = ''] = databases();
    indexes = open({ sandbox });
    const index = await indexes.of(project.root);
    expect(await index.refresh({ signal })).not.toHaveProperty('warning');
    // The threads end, and open their databases anew.
    await clock.advance(120_000);
    rmSync(join(folder, name));
    mkdirSync(join(folder, name));
    const hits = await index.search('refundPayment', 20, signal);
    expect(hits.map(({ path }) => path)).toEqual([other.path('lib/returns.ts')]);
    expect(index.warning()).toContain(`${project.root} is not searched: The search index cannot be used: `);
    rmSync(join(folder, name), { recursive: true });
    expect(await index.refresh({ signal })).not.toHaveProperty('warning');
    expect(await index.search('refundPayment', 20, signal)).toHaveLength(4);
    await other.dispose();
  });

  it('fails where no index can be used', async () => {
    const other = await tempProject({ 'lib/returns.ts': 'export function refundPayment2() {}\n' });
    const sandbox = createSandbox({ roots: [project.root, other.root], allowSecrets: false });
    writeFileSync(join(folder, 'file'), '');
    await indexes.close();
    indexes = open({ sandbox, folder: join(folder, 'file') });
    await expect(refresh()).rejects.toMatchObject({ kind: 'storage' });
    await other.dispose();
  });

  it('asks once for the vector of a question', async () => {
    const other = await tempProject({ 'lib/returns.ts': 'export function refundPayment2() {}\n' });
    const sandbox = createSandbox({ roots: [project.root, other.root], allowSecrets: false });
    const asked: string[] = [];
    const embed = async (texts: readonly string[]) => {
      asked.push(...texts);
      return texts.map(() => new Float32Array([1, 0]));
    };
    await indexes.close();
    indexes = open({ sandbox, embedder: { model: 'fake', embed } });
    const index = await indexes.of(project.root);
    await index.refresh({ signal });
    expect((await index.search('money', 20, signal)).map(({ path }) => path)).toContain(other.path('lib/returns.ts'));
    expect(asked.filter(text => text === 'money')).toHaveLength(1);
    await other.dispose();
  });
});

describe('the search index', () => {
  it('does not keep what it cut of a file that was another one, or gone, for a moment', async () => {
    const path = join(project.root, 'src/refund.ts');
    const text = files['src/refund.ts'];
    await refresh();
    writeFileSync(path, `${'// filler\n'.repeat(100)}${text}`);
    await search('refundPayment');
    writeFileSync(path, text);
    await refresh();
    expect((await search('refundPayment'))[0]).toBe('src/refund.ts:1-3');
    const moved = join(project.root, 'src/parcel.ts');
    renameSync(moved, `${moved}.bak`);
    await search('shipParcel');
    renameSync(`${moved}.bak`, moved);
    await refresh();
    expect((await search('shipParcel'))[0]).toBe('src/parcel.ts:1-12');
  });

  it('names the lines of a file as it is now, also before a look came to it, and none of one that is gone', async () => {
    await refresh();
    expect((await search('refundPayment'))[0]).toBe('src/refund.ts:1-3');
    await project.write('src/refund.ts', `${'// filler\n'.repeat(100)}${files['src/refund.ts']}`);
    expect((await search('refundPayment'))[0]).toBe('src/refund.ts:53-103');
    await project.remove('src/refund.ts');
    expect((await search('refundPayment')).join()).not.toContain('src/refund.ts');
  });

  it('names the lines of the file, also behind a secret of several lines', async () => {
    await indexes.close();
    const { mask } = createMask({ secret: 'pepper', keys: [] });
    const body = Array.from({ length: 25 }, (_, at) =>
      Buffer.from(`${at} key`.repeat(20)).toString('base64').slice(0, 64),
    );
    const key = ['-----BEGIN RSA PRIVATE KEY-----', ...body, '-----END RSA PRIVATE KEY-----'].join('\n');
    await project.write('keys.md', `# Keys\n\nOne of them.\n\n${key}\n\n# Tulips\n\nThey grow.\n\nIn May.\n`);
    indexes = open({ mask });
    await refresh();
    expect((await search('tulips'))[0]).toBe('keys.md:33-37');
  });

  it('finds declarations by their names, the words of their names, and what is said of them, source first', async () => {
    expect(await refresh()).toMatchObject({ files: 5, indexed: 5, removed: 0 });
    expect((await search('shipParcel'))[0]).toBe('src/parcel.ts:1-12');
    expect((await search('How are customers told about shipped parcels?'))[0]).toBe('src/parcel.ts:1-12');
    const refunds = await search('How does a refund payment work?');
    expect(refunds[0]).toBe('src/refund.ts:1-3');
    expect(refunds).toContain('docs/guide.md:1-7');
  });

  it('finds what is asked by name in the file that declares it, before those that speak of it more', async () => {
    await project.write('lib/base.py', 'class Parcel(Base):\n    def send(self):\n        pass\n');
    for (const at of [1, 2, 3]) {
      await project.write(
        `lib/parcel/parcels_${at}.py`,
        `# A parcel class: send a Parcel.\nclass ParcelList${at}:\n    parcel = Parcel\n`,
      );
      await project.write(
        `lib/send_${at}.ts`,
        'export function use() {\n  const sendAll = 1;\n  send(sendAll, sendAll);\n}\n',
      );
    }
    await project.write('lib/all.ts', '// What many use.\nexport const sendAll = () => undefined;\n');
    await refresh();
    for (const question of ['class Parcel', 'Parcel class', 'Parcel.send', 'what does `Parcel` do?']) {
      expect([question, (await search(question))[0]]).toEqual([question, 'lib/base.py:1-3']);
    }
    expect((await search('sendAll'))[0]).toBe('lib/all.ts:1-2');
    await project.write('lib/all.ts', 'export const sendAll = () => undefined;\n');
    await refresh();
    expect((await search('sendAll'))[0]).toBe('lib/all.ts:1-1');
  });

  it('finds a long class by its name where it is declared', async () => {
    const method = (name: string, lines: number) =>
      [`  ${name}() {`, ...Array.from({ length: lines }, (_, at) => `    this.run(${at});`), '  }'].join('\n');
    const members = [method('constructor', 30), method('weigh', 8), method('label', 8), method('post', 70)];
    await project.write('src/long.ts', `export class Carrier {\n  // What brings parcels.\n${members.join('\n')}\n}\n`);
    await refresh();
    expect((await search('Carrier'))[0]).toBe('src/long.ts:1-34');
  });

  it('holds nothing that is ignored or secret, and no secret in clear', async () => {
    await refresh();
    expect((await search('refundPayment', 20)).map(hit => hit.split(':')[0])).toEqual([
      'src/refund.ts',
      'test/refund.test.ts',
      'docs/guide.md',
    ]);
    expect(await search('shipParcel')).not.toEqual([]);
    await indexes.close();
    const stored = databases().map(name => readFileSync(join(folder, name), 'latin1'));
    expect(stored.join('')).toContain('[masked]');
    expect(stored.join('')).not.toContain(secret);
    expect(stored.join('').toLowerCase()).not.toContain('secret');
  });

  it('holds no text of a file until a search comes near to it, and then none of its secrets', async () => {
    const token = ['gh', 'p_', 'a1B2c3D4e5F6'.repeat(3)].join('');
    const word = ['sw0rdfish', 'Tr0mb0ne', '77x'].join('-');
    const key = [
      `-----BEGIN ${'PRIVATE'} KEY-----`,
      'MIIEvQIBADANBgkqhkiG'.repeat(12),
      `-----END ${'PRIVATE'} KEY-----`,
    ];
    await project.write('src/token.ts', `export const zebraToken = '${token}';\n`);
    await project.write('src/login.yml', `database:\n  zebraUser: admin\n  password: "${word}"\n`);
    await project.write('docs/zebra.md', `# Zebra keys\n\n${key.join('\n')}\n`);
    await indexes.close();
    indexes = open({ mask: createMask({ secret: 'pepper', keys: [] }).mask });
    await refresh();
    const inClear = async (text: string) => {
      await indexes.close();
      const stored = readdirSync(folder).map(name => readFileSync(join(folder, name), 'latin1'));
      indexes = open({ mask: createMask({ secret: 'pepper', keys: [] }).mask });
      return stored.join('').toLowerCase().includes(text.toLowerCase());
    };
    for (const text of ['zebraUser', 'Sends a parcel', token, 'sw0rdfish']) expect(await inClear(text)).toBe(false);
    const found = await search('zebra token user keys');
    expect(found.map(hit => hit.split(':')[0])).toEqual(
      expect.arrayContaining(['src/token.ts', 'src/login.yml', 'docs/zebra.md']),
    );
    expect(await inClear('zebraUser')).toBe(true);
    for (const text of [token, 'sw0rdfish', 'MIIEvQIBADANBgkqhkiG']) expect(await inClear(text)).toBe(false);
  });

  it('keeps what may be read with secret files apart from what may be read without', async () => {
    const paths = async () => (await search('refundPayment', 20)).map(hit => hit.split(':')[0]);
    await indexes.close();
    indexes = open({ sandbox: createSandbox({ roots: [project.root], allowSecrets: true }) });
    expect(await refresh()).toMatchObject({ indexed: 6 });
    expect(await paths()).toContain('.env');
    await indexes.close();
    indexes = open();
    expect(await refresh()).toMatchObject({ indexed: 5 });
    expect(await paths()).not.toContain('.env');
  });

  it('sees what changes in folders that it remembers, and follows no link that takes the place of one', async () => {
    const outside = await tempProject({ 'leak.ts': 'export const outsideOfAll = 1;\n' });
    await project.write('src/deep/inner.ts', 'export const innerThing = 1;\n');
    await refresh();
    expect(await refresh()).toMatchObject({ indexed: 0, removed: 0 });
    await project.write('src/deep/added.ts', 'export const addedThing = 1;\n');
    await project.write('src/deep/.gitignore', 'inner.ts\n');
    expect(await refresh()).toMatchObject({ indexed: 2, removed: 1 });
    expect((await search('innerThing')).join()).not.toContain('inner.ts');
    // The same folder, with other rules in the same file.
    await project.write('src/deep/.gitignore', '# none\n');
    expect(await refresh()).toMatchObject({ indexed: 2, removed: 0 });
    await project.write('src/deep/inner.ts', 'export const otherThing = 1;\n');
    expect(await refresh()).toMatchObject({ indexed: 1, removed: 0 });
    renameSync(project.path('src/deep/added.ts'), project.path('src/deep/renamed.ts'));
    expect(await refresh()).toMatchObject({ indexed: 1, removed: 1 });
    await project.remove('src/deep');
    symlinkSync(outside.root, project.path('src/deep'));
    await project.remove('src/refund.ts');
    symlinkSync(outside.path('leak.ts'), project.path('src/refund.ts'));
    expect(await refresh()).toMatchObject({ indexed: 0, removed: 4 });
    expect(await search('outsideOfAll')).toEqual([]);
    await outside.dispose();
  });

  it('answers from what is there while it is made, says that it is not whole, and goes on in the background', async () => {
    for (let n = 0; n < 600; n++) await project.write(`many/${n}.ts`, `export const numberOf${n} = ${n};\n`);
    const index = await indexes.of(project.root);
    const early = index.refresh({ signal, waitMs: 1_000 });
    await clock.advance(1_000);
    const { warning, files: known } = await early;
    expect(warning).toMatch(
      /the index is being (?:brought up to date|made, and \d+ of \d+ files are in it so far); resend/,
    );
    expect(known).toBeLessThan(605);
    await index.search('refundPayment', 5, signal);
    // Nobody waits for it: an abort of the call that began it changes nothing.
    const abort = new AbortController();
    const left = index.refresh({ signal: abort.signal, waitMs: 1_000 });
    abort.abort();
    await expect(left).rejects.toMatchObject({ kind: 'cancelled' });
    await expect.poll(async () => (await index.search('numberOf599', 1, signal))[0]?.path).toMatch(/many\/599\.ts$/);
    const whole = await index.refresh({ signal, waitMs: 1_000 });
    expect(whole).toMatchObject({ files: 605, indexed: 0 });
    expect(whole.warning).toBeUndefined();
  });

  it('counts a word in all its forms, a name by its parts, and what the path says', async () => {
    await project.write('src/billing/invoice-printer.ts', 'export const render = () => 1;\n');
    await refresh();
    expect((await search('shipped parcels'))[0]).toBe('src/parcel.ts:1-12');
    expect((await search('tracker of parcels'))[0]).toBe('src/parcel.ts:1-12');
    expect((await search('PARCEL_TRACKER'))[0]).toBe('src/parcel.ts:1-12');
    expect((await search('Where are invoices printed?'))[0]).toBe('src/billing/invoice-printer.ts:1-1');
  });

  it('is a file for its owner alone', async () => {
    await refresh();
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });

  it('reads only what changed: an edit, a new file, a deletion, and nothing for a touch', async () => {
    await refresh();
    expect(await refresh()).toMatchObject({ files: 5, indexed: 0, removed: 0 });
    await project.write('src/refund.ts', 'export function repayEverything() {\n  return 2;\n}\n');
    expect(await refresh()).toMatchObject({ files: 5, indexed: 1, removed: 0 });
    expect((await search('repayEverything'))[0]).toBe('src/refund.ts:1-3');
    await utimes(project.path('src/parcel.ts'), 1, 1);
    expect(await refresh()).toMatchObject({ indexed: 0 });
    await project.remove('src/refund.ts');
    await project.write('src/new.ts', 'export const brandNewThing = 1;\n');
    expect(await refresh()).toMatchObject({ files: 5, indexed: 1, removed: 1 });
    expect(await search('repayEverything')).toEqual([]);
    expect((await search('brandNewThing'))[0]).toBe('src/new.ts:1-1');
  });

  it('forgets a file once it is ignored', async () => {
    await refresh();
    await project.write('.gitignore', 'docs/\n');
    expect(await refresh()).toMatchObject({ removed: 1 });
    expect(await search('money goes back')).toEqual([]);
  });

  it('lasts beyond its process, and belongs to one workspace', async () => {
    await refresh();
    await indexes.close();
    indexes = open();
    expect(await refresh()).toMatchObject({ files: 5, indexed: 0 });
    await indexes.of(project.path('src'));
    const inner = await (await indexes.of(project.path('src'))).refresh({ signal });
    expect(inner).toMatchObject({ files: 2, indexed: 2 });
    expect(databases()).toHaveLength(2);
  });

  it('is not made for a folder outside of the roots', async () => {
    await expect(indexes.of(tmpdir())).rejects.toMatchObject({ kind: 'security' });
  });

  it('leaves nothing on disk in private mode, and keeps what it knows while the process lives', async () => {
    await indexes.close();
    indexes = createSearchIndexes({
      sandbox: createSandbox({ roots: [project.root], allowSecrets: false }),
      mask: async text => ({ text, found: {} }),
      clock,
    });
    expect(await refresh()).toMatchObject({ indexed: 5 });
    await clock.advance(60_000);
    expect(await refresh()).toMatchObject({ indexed: 0, files: 5 });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is made anew when its file is damaged, or of another version', async () => {
    await refresh();
    await indexes.close();
    const [name = ''] = databases();
    writeFileSync(join(folder, name), 'this is no database, but a text that somebody put here'.repeat(100));
    indexes = open();
    expect(await refresh()).toMatchObject({ indexed: 5, files: 5 });
    expect((await search('shipParcel'))[0]).toBe('src/parcel.ts:1-12');
  });

  it('lets its thread end when it has nothing to do, and goes on when it has', async () => {
    await refresh();
    expect(existsSync(join(folder, `${databases()[0]}-wal`))).toBe(true);
    await clock.advance(120_000);
    await expect.poll(() => existsSync(join(folder, `${databases()[0]}-wal`))).toBe(false);
    expect((await search('shipParcel'))[0]).toBe('src/parcel.ts:1-12');
  });

  it('is shared by processes that begin at once', async () => {
    const others = Array.from({ length: 4 }, () => open());
    const reports = await Promise.all(others.map(async each => (await each.of(project.root)).refresh({ signal })));
    expect(reports.map(report => report.files)).toEqual([5, 5, 5, 5]);
    for (const each of others) {
      const hits = await (await each.of(project.root)).search('shipParcel', 9, signal);
      expect(hits.filter(hit => hit.path.endsWith('parcel.ts'))).toHaveLength(1);
      await each.close();
    }
  });

  it('puts everything anew when asked', async () => {
    await refresh();
    expect(await refresh({ rebuild: true })).toMatchObject({ indexed: 5, files: 5 });
  });

  it('takes words that mean something to a database as words', async () => {
    await refresh();
    expect(await search('NEAR("refund*) OR - ^ refundPayment" AND NOT :')).not.toEqual([]);
    expect(await search('* " \' ; --')).toEqual([]);
    expect(await search('')).toEqual([]);
  });
});

describe('the search index of 10,000 files', () => {
  it('tells how far it is, keeps what it has when it is cancelled, and goes on from there', {
    timeout: 120_000,
  }, async () => {
    const many = await tempProject();
    for (let n = 0; n < 100; n++) mkdirSync(many.path(`f${n}`));
    for (let n = 0; n < 10_000; n++) writeFileSync(many.path(`f${n % 100}/${n}.txt`), `Number ${n} of many.\n`);
    await indexes.close();
    indexes = createSearchIndexes({
      folder,
      sandbox: createSandbox({ roots: [many.root], allowSecrets: false }),
      mask: async text => ({ text, found: {} }),
      clock,
    });
    const index = await indexes.of(many.root);
    const abort = new AbortController();
    const told: string[] = [];
    const cancelled = index.refresh({
      signal: abort.signal,
      onProgress(stage, done, total) {
        told.push(`${stage} ${done} of ${total}`);
        if (told.length === 4) abort.abort();
      },
    });
    await expect(cancelled).rejects.toMatchObject({ kind: 'cancelled' });
    expect(told.at(-1)).toMatch(/^indexing 2\d\d\d of 10000$/);
    told.length = 0;
    const report = await index.refresh({ signal, onProgress: (_stage, done) => told.push(String(done)) });
    expect(report.files).toBe(10_000);
    expect(report.indexed).toBeGreaterThan(7_000);
    expect(report.indexed).toBeLessThan(8_100);
    expect(told.length).toBeGreaterThan(14);
    expect(told.length).toBeLessThanOrEqual(20);
    expect(told.at(-1)).toBe('10000');
    const [hit] = await index.search('number 7777', 1, signal);
    expect(hit?.path).toBe(join(many.root, 'f77/7777.txt'));
    await many.dispose();
  });
});

describe('the search index with a model for vectors', () => {
  let vendor: FakeEmbeddings;
  beforeEach(async () => {
    vendor = await startEmbeddings();
    await indexes.close();
    indexes = open({ embedder: httpEmbedder(vendor.url, 'fake-embedding') });
  });
  afterEach(async () => {
    expect(vendor.violations).toEqual([]);
    await vendor.close();
  });

  it('embeds each chunk once, masked, and only what changed after that', async () => {
    const first = await refresh();
    expect(first).toMatchObject({ chunks: first.vectors, indexed: 5 });
    expect(vendor.texts).toHaveLength(first.chunks);
    expect(vendor.texts.join()).not.toContain(secret);
    vendor.texts.length = 0;
    await project.write('src/refund.ts', 'export function giveBack() {\n  return 1;\n}\n');
    await refresh();
    expect(vendor.texts).toEqual([expect.stringContaining('giveBack')]);
  });

  it('shows nobody a secret in a question either', async () => {
    await refresh();
    vendor.texts.length = 0;
    await search(`where is ${secret}?`);
    expect(vendor.texts).toEqual(['where is [masked]?']);
  });

  it('finds by meaning what has none of the words', async () => {
    indexes = open();
    await refresh();
    expect(await search('reimbursement')).toEqual([]);
    await indexes.close();
    indexes = open({ embedder: httpEmbedder(vendor.url, 'fake-embedding') });
    await refresh();
    expect((await search('reimbursement'))[0]).toMatch(/refund/);
  });

  it('goes on with words alone when the model fails, and says so', async () => {
    vendor.fail = 503;
    const report = await refresh();
    expect(report).toMatchObject({ indexed: 5, vectors: 0 });
    expect(report.warning).toContain('words alone');
    expect((await search('shipParcel'))[0]).toBe('src/parcel.ts:1-12');
    vendor.fail = undefined;
    expect((await refresh()).vectors).toBe(report.chunks);
  });
});
