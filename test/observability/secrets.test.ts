import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { canaries, carriers } from '../support/canaries.ts';
import { type RunningVendor, startEveryVendor } from '../support/every-vendor.ts';
import { fastClock } from '../support/fast-clock.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { type Document, type TestProduct, testProduct } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

/** A key of the operator for each vendor, which nobody but the vendor may see. */
const keyOf = (id: string) => `${id}-key-cAnArY5Vb2Nm8Qw4${id.length}Zx7`;

let project: TempProject;
let collector: OtlpReceiver;
let vendors: RunningVendor[];
let polylogue: TestProduct;
const replies: Document[] = [];

/** All that vendors were ever sent, keys in headers included; a model on this very machine is shown texts as they are. */
const toVendors = () =>
  vendors
    .filter(({ id }) => id !== 'ollama')
    .flatMap(({ fake }) => fake.requests.map(request => JSON.stringify(request)));

beforeAll(async () => {
  const files = Object.fromEntries(canaries.map(([text], index) => [`file-${index}.txt`, `Text: ${text}\n`]));
  project = await tempProject({ ...files, '.env': 'PASSWORD=hunter2\n' });
  collector = await startOtlpReceiver();
  vendors = await startEveryVendor(keyOf);
  const keys = Object.assign({}, ...vendors.map(({ env }) => env));
  polylogue = await testProduct({
    root: project.root,
    clock: fastClock(10),
    env: {
      ...keys,
      POLYLOGUE_TOOLSETS: 'core,code,ops',
      LOG_LEVEL: 'debug',
      COMMS_LOG: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20OPERATORCANARY',
      OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true',
    },
  });
  await Promise.all(vendors.map(provoke));
  replies.push(await polylogue.call('status'), await polylogue.call('listmodels'));
  replies.push(await polylogue.call('threads', { action: 'list' }));
  for (const [text] of canaries) {
    const path = `/${text}`;
    replies.push(
      await polylogue.call(text, { [text]: text }),
      await polylogue.call('chat', { prompt: 'Hi', absolute_file_paths: [path], images: [path] }),
      await polylogue.call('import_thread', { file_path: path }),
      await polylogue.call('export_thread', { continuation_id: text, output_path: path }),
    );
  }
});
afterAll(async () => {
  await polylogue.close();
  for (const { fake } of vendors) await fake.close();
  await collector.close();
  await project.dispose();
});

/** Callers send secrets; vendors echo them, in pieces, and fail with them in every way. */
async function provoke({ id, fake, model }: RunningVendor): Promise<void> {
  const texts = [...canaries.map(([text]) => text), `Incorrect API key provided: ${keyOf(id)}.`];
  const all = texts.join('\n\n');
  const name = `${id}:${model}`;
  fake.script(
    { answer: `You said: ${all}`, chunks: Math.ceil(all.length / 7) },
    { fault: 'cut_mid_stream', answer: `${all}\n${all}`, chunkDelayMs: 0 },
    { answer: 'ok' },
    { fault: 'status', status: 401, body: { error: { message: all, type: 'invalid_request_error', param: all } } },
  );
  const files = canaries.map((_, index) => project.path(`file-${index}.txt`));
  const first = await polylogue.call('chat', { prompt: all, model: name, absolute_file_paths: files });
  replies.push(first);
  const thread = first.continuation_offer?.continuation_id;
  replies.push(await polylogue.call('chat', { prompt: `Again: ${all}`, model: name, continuation_id: thread }));
  replies.push(await polylogue.call('chat', { prompt: 'Third', model: name }));
  for (const { headers, body } of carriers(all)) {
    fake.script({ fault: 'status', status: 400, headers, body });
    replies.push(await polylogue.call('chat', { prompt: 'Fourth', model: name }));
  }
}

const secrets = [...canaries.map(([, secret]) => secret), 'hunter2'];

function expectClean(text: string, where: string): void {
  for (const secret of [...secrets, ...vendors.map(({ id }) => keyOf(id))]) {
    const at = text.indexOf(secret);
    const found = at < 0 ? '' : `${text.slice(Math.max(0, at - 200), at + secret.length + 40)}`;
    expect(found, `${secret} in ${where}`).toBe('');
  }
}

describe('secrets of callers, files, vendors and the operator', () => {
  it('did reach the product: ten vendors with keys were asked and told them', () => {
    expect(
      vendors.filter(({ env }) => Object.values(env).some(value => value.includes('cAnArY5Vb2Nm8Qw4'))).length,
    ).toBeGreaterThanOrEqual(10);
    for (const { id, fake } of vendors) expect(fake.requests.length, id).toBeGreaterThan(3);
  });

  it('are in no reply', () => {
    expect(replies.length).toBeGreaterThan(vendors.length * 5);
    for (const reply of replies) expectClean(JSON.stringify(reply), 'a reply');
  });

  it('are sent to no vendor but in the header that is for its key', () => {
    for (const text of toVendors()) expectClean(text.replaceAll(/(?<=[:" ])[\w-]+-key-cAnArY5Vb\w+/g, ''), 'a request');
    for (const { id, fake } of vendors) {
      const others = vendors.filter(vendor => vendor.id !== id);
      for (const other of others) expect(JSON.stringify(fake.requests)).not.toContain(keyOf(other.id));
    }
  });

  it('are in no answer of the daemon, its metrics included', async () => {
    const daemon = await polylogue.product.openDaemon({ port: 0 });
    const answers: string[] = [];
    const ask = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(`${daemon.url}${path}`, init);
      answers.push(`${JSON.stringify([...response.headers])} ${await response.text()}`);
    };
    await ask('/metrics');
    expect(answers[0]).toContain('polylogue_model_attempts_total');
    await ask('/readyz');
    const [[text] = ['']] = canaries.map(([each]) => [each.replace(/\s+/g, ' ')]);
    for (const headers of [
      { authorization: `Bearer ${text}` },
      { origin: `https://${text}` },
      { 'polylogue-root': text },
    ]) {
      await ask('/mcp', { headers });
    }
    for (const [each] of canaries) {
      const body = JSON.stringify({ prompt: each, model: each, [each]: each });
      const headers = { 'content-type': 'application/json', 'polylogue-root': encodeURIComponent(`/${each}`) };
      await ask(`/${encodeURIComponent(each)}`);
      await ask(`/api/tools/${encodeURIComponent(each)}`, { method: 'POST', body, headers });
      await ask('/api/tools/chat', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
      await ask('/api/tools/chat', { method: 'POST', body, headers });
    }
    await daemon.close();
    expect(answers.length).toBeGreaterThan(canaries.length * 4);
    for (const answer of answers) expectClean(answer, 'an answer of the daemon');
  });

  it('are in no log, side file, trace, nor on stderr, after everything was written', async () => {
    await polylogue.product.close();
    expect(polylogue.log.length).toBeGreaterThan(50);
    expectClean(polylogue.log.join(''), 'stderr');

    const logs = join(polylogue.home, 'logs');
    const names = (await readdir(logs, { recursive: true })).filter(name => /\.(jsonl(\.\d+)?|txt|bin)$/.test(name));
    for (const name of ['breadcrumbs', 'activity', 'audit', 'comms']) expect(names).toContain(`${name}.jsonl`);
    expect(names.filter(name => name.startsWith('comms/')).length).toBeGreaterThan(0);
    for (const name of names) expectClean(await readFile(join(logs, name), 'utf8'), name);

    expect(collector.violations).toEqual([]);
    expect(collector.spans.filter(({ name }) => name.startsWith('chat ')).length).toBeGreaterThan(vendors.length);
    for (const { body } of collector.requests) expectClean(body, 'a trace');
  });

  it('are nowhere else in what was kept', async () => {
    const names = await readdir(polylogue.home, { recursive: true, withFileTypes: true });
    for (const entry of names.filter(each => each.isFile())) {
      const path = join(entry.parentPath, entry.name);
      expectClean(await readFile(path, 'latin1'), path);
    }
  });
});
