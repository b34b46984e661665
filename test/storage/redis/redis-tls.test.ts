import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openStore } from '../../../src/app/compose-storage.ts';
import { systemEnvironment } from '../../../src/app/system-environment.ts';
import type { Store } from '../../../src/storage/store.ts';
import { newThreadId, start, threadWith } from '../../contracts/store-fixtures.ts';
import { freePort, type RedisServer, startRedis } from '../../support/redis-server.ts';

const { clock, random } = systemEnvironment();
const password = 'a/secret#1%';
const run = promisify(execFile);
let folder: string;
let server: RedisServer;
let port: number;
const stores: Store[] = [];
const warned: string[] = [];

/** A certificate for these names, signed by itself. */
async function certificate(name: string, names: string): Promise<void> {
  const files = ['-keyout', join(folder, `${name}.key`), '-out', join(folder, `${name}.pem`)];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=redis'];
  await run('openssl', ['req', '-x509', '-days', '2', ...kind, ...files, '-addext', `subjectAltName=${names}`]);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'polylogue-tls-'));
  await Promise.all([certificate('server', 'IP:127.0.0.1'), certificate('other', 'IP:127.0.0.1')]);
  await writeFile(join(folder, 'empty.pem'), 'nothing\n');
  port = await freePort();
  const files = ['--tls-cert-file', join(folder, 'server.pem'), '--tls-key-file', join(folder, 'server.key')];
  const tls = ['--tls-port', String(port), ...files, '--tls-ca-cert-file', join(folder, 'server.pem')];
  server = await startRedis(...tls, '--tls-auth-clients', 'no');
  await server.command('ACL', 'SETUSER', 'team', 'on', `>${password}`, '~*', '&*', '+@all');
});
afterAll(async () => {
  await Promise.all(stores.map(store => store.close()));
  await server.dispose();
  await rm(folder, { recursive: true, force: true });
});

async function open(at: string, ca?: string, secret = password): Promise<Store> {
  const url = `rediss://team:${encodeURIComponent(secret)}@${at}`;
  const redis = { url, caFile: ca && join(folder, ca), prefix: 'tls:', patienceMs: 3_000 };
  const { store } = await openStore({
    redis,
    clock,
    random,
    emit: event => void (event.type === 'warning' && warned.push(event.message)),
  });
  stores.push(store);
  return store;
}

it.each(['/2', '?db=2', '/?db=2'])(
  'keeps threads over TLS, for a user with a password, in the database %s',
  async where => {
    const store = await open(`127.0.0.1:${port}${where}`, 'server.pem');
    const thread = await threadWith(store, ['What is it?', 'A hinge.']);
    expect(await store.head(thread.id, start)).toMatchObject({ state: 'live', value: { id: thread.id } });
    expect(String(await server.command('INFO', 'keyspace'))).toMatch(/^db2:/m);
    expect(String(await server.command('INFO', 'keyspace'))).not.toMatch(/^db0:/m);
  },
);

it.each<[string, () => Promise<Store>, RegExp]>([
  ['is signed by nobody who is known', () => open(`127.0.0.1:${port}`), /REDIS_CA_FILE/],
  ['is signed by somebody else', () => open(`127.0.0.1:${port}`, 'other.pem'), /REDIS_CA_FILE/],
  ['is for another name', () => open(`localhost:${port}`, 'server.pem'), /other names/],
  ['is compared with no certificate', () => open(`127.0.0.1:${port}`, 'empty.pem'), /in PEM/],
  ['is compared with a file that is not there', () => open(`127.0.0.1:${port}`, 'nowhere.pem'), /in PEM/],
  [
    'is good, but the password wrong',
    () => open(`127.0.0.1:${port}`, 'server.pem', `${password}x`),
    /user and password/,
  ],
])('says what to do when the certificate of the server %s', async (_what, make, next) => {
  const store = await make();
  const error = await store.head(newThreadId(), start).catch(thrown => thrown);
  expect(error).toMatchObject({ kind: 'storage', details: { code: 'STORAGE', next: expect.stringMatching(next) } });
  const all = [error.message, error.stack, error.details.next, ...warned].join('\n');
  for (const text of [password, encodeURIComponent(password)]) expect(all).not.toContain(text);
});
