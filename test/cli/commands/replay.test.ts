import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { runProgram } from '../run-program.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);
const secret = 'cAnArY7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0Js';
const esc = '\u001b';

let project: TempProject;
let vendor: FakeVendor;
let polylogue: TestProduct;
let env: Record<string, string>;
/** The list as programs get it. */
let listed: Document;
const run = (...args: string[]) =>
  runProgram(['replay', ...args], { cwd: project.root, env: { POLYLOGUE_HOME: polylogue.home, ...env } });

beforeAll(async () => {
  project = await tempProject({ 'a.ts': `// ghp_${secret}\n${'const a = 1;\n'.repeat(600)}`, 'dot.png': png });
  vendor = await startOpenAi();
  env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'openai:gpt-5.2' };
  polylogue = await testProduct({ root: project.root, env: { ...env, COMMS_LOG: 'true' } });
  vendor.script({ answer: `First ${esc}[2Janswer.` }, { fault: 'status', status: 400 });
  const files = { absolute_file_paths: [project.path('a.ts')], images: [project.path('dot.png')] };
  await polylogue.call('chat', { prompt: 'What is this?', ...files, thinking_mode: 'high' });
  await polylogue.call('chat', { prompt: 'And this?' });
  await polylogue.product.close();
  const { out } = await run('--json');
  listed = JSON.parse(out);
});
afterAll(async () => {
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

describe('polylogue replay', () => {
  it('lists exchanges, the newest first', async () => {
    const { exchanges, kept } = listed;
    const about = { tool: 'chat', provider: 'openai', model: 'gpt-5.2', req_id: expect.any(String) };
    expect(exchanges).toMatchObject([
      { ...about, outcome: 'error' },
      { ...about, outcome: 'ok', usage: { output: expect.any(Number) }, cost_usd: expect.any(Number) },
    ]);
    expect(kept).toBe(false);
    const { out } = await run('--limit', '1', '--tool', 'chat');
    expect(out).toMatch(
      new RegExp(`^${exchanges[0].exchange}  [-\\d]+ [:\\d]+  error +[\\d.]+ s  chat  openai:gpt-5.2\\n$`),
    );
    expect((await run('--call', 'nobody')).out).toContain('No recorded exchanges');
  });

  it('shows one as question and answer, whole, without secrets and without what steers a terminal', async () => {
    const { exchanges } = listed;
    const { out, code } = await run(exchanges[1].exchange);
    expect(code).toBe(0);
    expect(out).toMatch(/→ request[\s\S]*\[system, preamble\][\s\S]*What is this\?[\s\S]*\(image\/png, 70 bytes\)/);
    expect(out).toMatch(/← response.*\nFirst \\u\{1b\}\[2Janswer\.\n$/);
    expect(out).toContain('[masked:github_token:');
    expect(out.match(/const a = 1;/g)).toHaveLength(600);
    expect(out).not.toContain(secret);
    expect((await run('last')).out).toMatch(/← error[\s\S]*API_ERROR \(\w+\): /);
  });

  it('shows all that is known of one as JSON', async () => {
    const { exchanges } = listed;
    const { lines, status } = JSON.parse((await run(exchanges[1].exchange, '--json')).out);
    expect(status).toBe('success');
    expect(lines).toMatchObject([
      { direction: 'out', kind: 'request', payload: { attempt: 1, effort: 'high', providerOptions: { openai: {} } } },
      { direction: 'in', kind: 'response', payload: { finish: { kind: 'stop' } } },
    ]);
    expect(JSON.stringify(lines)).toContain(png.toString('base64'));
  });

  it('sends nothing but with --send, and then the same question to the same model, once', async () => {
    const before = vendor.requests.length;
    expect(before).toBe(2);
    const { exchanges } = listed;
    vendor.script({ answer: 'Again.' });
    const { out, code } = await run(exchanges[1].exchange, '--send');
    expect([code, out]).toEqual([0, 'Again.\n']);
    expect(vendor.requests).toHaveLength(before + 1);
    expect(vendor.violations).toEqual([]);
    const [first] = vendor.requests;
    const again = vendor.requests.at(-1);
    expect(again?.canonical).toBe(first?.canonical.replace(/ghp_\w+/g, ''));
    expect(again?.messages).toEqual(first?.messages);
    expect(again?.parameters.replace(/"prompt_cache_key":"[^"]*",?/, '')).toBe(
      first?.parameters.replace(/"prompt_cache_key":"[^"]*",?/, ''),
    );
    const usage = await runProgram(['usage', '--by', 'tool', '--json'], {
      cwd: project.root,
      env: { POLYLOGUE_HOME: polylogue.home },
    });
    expect(JSON.parse(usage.out).rows).toContainEqual(expect.objectContaining({ tool: 'replay', calls: 1 }));
  });

  it('says what to do where there is no such exchange, and where a part of it is gone', async () => {
    const nobody = await run('abc');
    expect([nobody.code, nobody.err]).toEqual([
      2,
      expect.stringMatching(/Unknown exchange "abc"[\s\S]*polylogue replay/),
    ]);
    expect((await run('--send')).code).toBe(2);
    expect(await run('--limit', '0')).toMatchObject({ code: 2, err: expect.stringContaining('from 1 to 1000') });
    const { exchanges } = listed;
    await rm(join(polylogue.home, 'logs/comms'), { recursive: true });
    expect((await run(exchanges[1].exchange)).out).toMatch(/bytes that are no longer kept/);
    const gone = await run(exchanges[1].exchange, '--send');
    expect([gone.code, gone.err]).toEqual([2, expect.stringContaining('no longer kept')]);
    expect(await readFile(join(polylogue.home, 'logs/comms.jsonl'), 'utf8')).not.toContain(secret);
  });
});
