import { chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { asNobody } from '../support/as-nobody.ts';
import { type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

/** The machine may be busy. */
const patience = { timeout: 30_000 };

const open: { project?: TempProject; vendor?: FakeVendor; product?: TestProduct } = {};
afterEach(async () => {
  // So that it can be removed.
  if (open.product) await chmod(join(open.product.home, 'logs'), 0o700).catch(() => undefined);
  await open.product?.close();
  await open.vendor?.close();
  await open.project?.dispose();
});

const sinks = ['breadcrumbs', 'activity', 'audit', 'comms'] as const;

async function start() {
  const project = await tempProject();
  const vendor = await startOpenAi();
  const env = { ...vendorEnv({ openai: vendor.url }), COMMS_LOG: 'true', DEFAULT_MODEL: 'openai:gpt-5.2' };
  const product = await testProduct({ root: project.root, env });
  Object.assign(open, { project, vendor, product });
  const logs = join(product.home, 'logs');
  return {
    logs,
    ask: () => product.call('chat', { prompt: 'Hi' }),
    /** What the operator was told of failing sinks, once each had its turn. */
    async told() {
      await expect
        .poll(() => product.log.filter(line => line.includes('the sink ')).length, patience)
        .toBe(sinks.length);
      return product.log.filter(line => line.includes('the sink ')).join('');
    },
    read: (name: string) => readFile(join(logs, `${name}.jsonl`), 'utf8'),
  };
}

describe('a sink that fails', () => {
  it.each<[string, (logs: string) => Promise<unknown>]>([
    ['ENOTDIR|EEXIST', logs => writeFile(logs, 'a file where the folder belongs')],
    ['EISDIR', logs => Promise.all(sinks.map(name => mkdir(join(logs, `${name}.jsonl`), { recursive: true })))],
    [
      'ENOSPC',
      async logs => {
        await mkdir(logs);
        await Promise.all(sinks.map(name => symlink('/dev/full', join(logs, `${name}.jsonl`))));
      },
    ],
  ])('fails no call: %s', async (code, breakIt) => {
    const { logs, ask, told } = await start();
    await breakIt(logs);
    for (let call = 0; call < 3; call++) expect(await ask()).toMatchObject({ isError: false });
    for (const name of sinks) expect(await told()).toMatch(new RegExp(`the sink ${name}[^:]* failed: .*(${code})`));
  });

  it('fails no call: EACCES', async () => {
    const { logs, ask, told } = await start();
    await mkdir(logs);
    await chmod(logs, 0o500);
    await chmod(join(logs, '..'), 0o777);
    await asNobody(async () => {
      expect(await ask()).toMatchObject({ isError: false });
      for (const name of sinks) expect(await told()).toMatch(new RegExp(`the sink ${name}[^:]* failed: .*EACCES`));
    });
  });

  it('works again as soon as it can, also where its folder was removed under it', async () => {
    const { logs, ask, told, read } = await start();
    await ask();
    // What is still to be written would bring the folder back.
    const last = { breadcrumbs: '"type":"call.end"', activity: '"act":"end"', audit: '"act":"call"', comms: 'Answer' };
    for (const name of sinks) await expect.poll(() => read(name), patience).toContain(last[name]);
    await rm(logs, { recursive: true });
    await writeFile(logs, '');
    await ask();
    await told();
    await rm(logs);
    const { metadata } = await ask();
    for (const name of sinks) await expect.poll(() => read(name), patience).toContain(metadata.req_id);
  });
});
