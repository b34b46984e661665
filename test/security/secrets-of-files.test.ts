import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { canaries } from '../support/canaries.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOllama } from '../support/vendors/start-ollama.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const all = canaries.map(([text]) => text).join('\n\n');
const secrets = [...new Set(canaries.map(([, secret]) => secret))];
const token = `ghp_${'Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2'}`;
const key = ['-----BEGIN PRIVATE KEY-----', 'M'.repeat(64), 'Z'.repeat(64), '-----END PRIVATE KEY-----'].join('\n');

let openai: FakeVendor;
let ollama: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;

beforeEach(async () => {
  openai = await startOpenAi();
  ollama = await startOllama({ models: [{ id: 'qwen3:8b' }] });
  project = await tempProject({
    'conf.ts': `const token = '${token}';\nconst key = \`${key}\`;\nexport const port = 80;\n`,
  });
  const env = {
    ...vendorEnv({ openai: openai.url, ollama: ollama.url }),
    DEFAULT_MODEL: 'gpt-5.2',
    LOG_LEVEL: 'debug',
  };
  polylogue = await testProduct({
    root: project.root,
    env: {
      ...env,
      WRITE_GENERATED_CODE: 'on',
      POLYLOGUE_TOOLSETS: 'core,code,wrapper,ops',
      ANTHROPIC_API_KEY: 'OPERATORCANARY',
    },
  });
});

afterEach(async () => {
  expect([...openai.violations, ...ollama.violations]).toEqual([]);
  await polylogue.close();
  await Promise.all([openai.close(), ollama.close(), project.dispose()]);
});

const chat = (args: Record<string, unknown> = {}) =>
  polylogue.call('chat', { prompt: 'Look.', absolute_file_paths: ['conf.ts'], ...args });
const asked = (vendor: FakeVendor) => vendor.requests.filter(({ dialect }) => dialect !== 'models');
const sentTo = (vendor: FakeVendor) =>
  asked(vendor)
    .flatMap(({ messages }) => messages.map(({ text }) => text))
    .join('\n');
/** The placeholders as a model saw them, by kind. */
const seen = (vendor: FakeVendor, kind: string) =>
  sentTo(vendor).match(new RegExp(`\\[masked:${kind}:\\w+\\]`))?.[0] ?? '';
const artifact = (code: string) => `Here.\n<GENERATED-CODE>\n<NEWFILE: b.ts>\n${code}\n</NEWFILE>\n</GENERATED-CODE>`;

/** Everything that was kept: the store, the logs, what went to stderr. */
async function kept(): Promise<string> {
  await polylogue.product.close();
  const entries = await readdir(polylogue.home, { recursive: true, withFileTypes: true });
  const files = entries.filter(entry => entry.isFile());
  const texts = await Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'latin1')));
  expect(files.map(({ name }) => name)).toEqual(expect.arrayContaining(['threads.sqlite', 'breadcrumbs.jsonl']));
  return [...texts, ...polylogue.log].join('\n');
}

describe('21 canary secrets in files, prompts and answers', () => {
  it('reach no provider, store, log or reply in clear, whichever tool is asked', async () => {
    await project.write('all.txt', all);
    openai.byDefault({ answer: `You sent this:\n${all}\nDone.` });
    const streamed: string[] = [];
    const replies: Document[] = [];
    const files = ['all.txt'];
    const first = await chat({ prompt: `Why?\n${all}`, absolute_file_paths: files });
    replies.push(first);
    replies.push(await chat({ prompt: 'Again.', continuation_id: first.continuation_offer.continuation_id }));
    const step = { step: all, step_number: 1, total_steps: 1, next_step_required: false, findings: all };
    replies.push(await polylogue.call('debug', { ...step, relevant_files: files, confidence: 'low' }));
    replies.push(
      await polylogue.call('consensus', { prompt: all, models: ['gpt-5.2', 'gpt-4.1'], relevant_files: files }),
    );
    replies.push(await polylogue.call('prompt', { text: all, models_prefixed_by_provider: ['openai:gpt-4.1'] }));
    const into = { file_path: 'all.txt', models_prefixed_by_provider: ['openai:gpt-4.1'], output_dir: 'out' };
    replies.push(await polylogue.call('prompt_from_file_to_file', into));
    const principal = { owner: 'local', root: project.root };
    const onText = (delta: string) => void streamed.push(delta);
    const request = { name: 'chat', arguments: { prompt: all }, principal, onText };
    replies.push((await polylogue.product.host.call(request, new AbortController().signal)).document);
    replies.push(await polylogue.call('export_thread', { continuation_id: 'last', format: 'md' }));

    for (const reply of replies) expect(reply.status, JSON.stringify(reply).slice(0, 400)).not.toBe('error');
    expect(streamed.join('')).toContain('Done.');
    expect(asked(openai).length).toBeGreaterThanOrEqual(8);
    const stored = await kept();
    for (const secret of secrets) {
      expect(JSON.stringify(asked(openai).map(({ body }) => body)), secret).not.toContain(secret);
      expect(JSON.stringify(replies), secret).not.toContain(secret);
      expect(streamed.join(''), secret).not.toContain(secret);
      expect(stored, secret).not.toContain(secret);
    }
  });
});

describe('code that a model wrote around masked secrets', () => {
  it('has none of them, in no file but their own, and says on which lines', async () => {
    openai.byDefault({
      answer: () => artifact(`const a = '${seen(openai, 'github_token')}';\n${seen(openai, 'private_key')}`),
    });
    const reply = await chat({ working_directory_absolute_path: project.root });
    const path = project.path('polylogue_generated.code');
    const written = await readFile(path, 'utf8');
    expect(written).toContain(`const a = '${seen(openai, 'github_token')}';\n${seen(openai, 'private_key')}\n`);
    expect(reply.generated_code).toMatchObject({ path, secrets_left_masked: 2 });
    expect(reply.content).toMatch(/Lines 3, 4 of it/);
    expect(await kept()).not.toContain(token);
  });

  it('of a thread that went on, or was forked, has none either', async () => {
    const first = await chat();
    const id = first.continuation_offer.continuation_id;
    const placeholder = seen(openai, 'github_token');
    const fork = await polylogue.call('threads', { action: 'fork', continuation_id: id });
    openai.byDefault({ answer: artifact(placeholder) });
    for (const continuation_id of [id, fork.continuation_id]) {
      const working_directory_absolute_path = project.root;
      const reply = await chat({ continuation_id, absolute_file_paths: [], working_directory_absolute_path });
      expect(reply.generated_code).toMatchObject({ secrets_left_masked: 1 });
      expect(await readFile(project.path('polylogue_generated.code'), 'utf8')).toContain(placeholder);
    }
  });

  it('keeps placeholders of another thread, and of secrets that are gone, and says so', async () => {
    const first = await chat();
    const foreign = seen(openai, 'github_token');
    openai.byDefault({ answer: artifact(`a ${foreign}`) });
    const working_directory_absolute_path = project.root;
    const other = await chat({ working_directory_absolute_path });
    expect(other.generated_code).toMatchObject({ secrets_left_masked: 1 });
    expect(other.generated_code).not.toHaveProperty('secrets_put_back');
    expect(other.content).toMatch(/Lines 3 of it/);
    expect(await readFile(project.path('polylogue_generated.code'), 'utf8')).toContain(`a ${foreign}`);

    await project.write('conf.ts', `const token = 'none';\n`);
    const gone = await chat({
      working_directory_absolute_path,
      continuation_id: first.continuation_offer.continuation_id,
    });
    expect(gone.generated_code).toMatchObject({ secrets_left_masked: 1 });
    expect(await readFile(project.path('polylogue_generated.code'), 'utf8')).toContain(`a ${foreign}`);
  });

  it('has the passwords that the model made up for its tests, in the answer and in the file', async () => {
    await project.write('login.ts', "export const login = { password: 'hunter22', user: 'ann' };\n");
    const made = "login('ann', { password: 'correct-horse-9' });";
    openai.script({ answer: artifact(made) }, { answer: `Write: ${made}` });
    await chat({ absolute_file_paths: ['login.ts'], working_directory_absolute_path: project.root });
    expect(sentTo(openai)).toContain('[masked:password:');
    expect(await readFile(project.path('polylogue_generated.code'), 'utf8')).toContain(made);
    const reply = await chat({ prompt: "What about password = 'hunter22'?", absolute_file_paths: [] });
    expect(sentTo(openai)).not.toContain('hunter22');
    expect(reply.content).toContain(made);
  });

  it('in an answer has those of the file that it replaces, and of no other', async () => {
    const conf = await readFile(project.path('conf.ts'), 'utf8');
    openai.byDefault({ answer: ({ messages }) => messages.map(({ text }) => text.replace('80', '81')).join('\n') });
    const into = { file_path: 'conf.ts', models_prefixed_by_provider: ['openai:gpt-4.1'], overwrite: true };
    const away = await polylogue.call('prompt_from_file_to_file', { ...into, output_path: 'answer.md' });
    expect(away.result.responses[0]).toMatchObject({ secrets_left_masked: 2 });
    expect(await readFile(project.path('answer.md'), 'utf8')).toMatch(/token = '\[masked:github_token:/);
    const reply = await polylogue.call('prompt_from_file_to_file', { ...into, output_path: 'conf.ts' });
    expect(reply.result.responses[0]).toMatchObject({ secrets_put_back: 2 });
    expect(await readFile(project.path('conf.ts'), 'utf8')).toBe(conf.replace('80', '81'));
    expect((await stat(project.path('conf.ts'))).mode & 0o777).toBe(0o600);
    openai.byDefault({
      answer: ({ messages }) => `log(${/\[masked:\w+:\w+\]/.exec(messages.at(-1)?.text ?? '')?.[0]})`,
    });
    const lost = await polylogue.call('prompt_from_file_to_file', { ...into, output_path: 'conf.ts' });
    expect(lost.result.responses[0].file_error.message).toMatch(/^Line 1 of \S+conf\.ts would have \[masked:/);
    expect(await readFile(project.path('conf.ts'), 'utf8')).toBe(conf.replace('80', '81'));
    expect(JSON.stringify([away, reply, lost])).not.toContain(token);
    expect(sentTo(openai)).not.toContain(token);
  });
});

describe('a model that runs on this machine', () => {
  const local = { model: 'ollama:qwen3:8b' };

  it('sees the secrets of files, which the store, the reply and other models never do', async () => {
    ollama.byDefault({ answer: `The token is ${token}, the key begins with ${'M'.repeat(64)}.` });
    const first = await chat(local);
    expect(first.isError, JSON.stringify(first.error)).toBe(false);
    expect(sentTo(ollama)).toContain(`const token = '${token}'`);
    expect(sentTo(ollama)).toContain('M'.repeat(64));
    expect(sentTo(ollama)).not.toContain('[masked:');
    expect(first.content).toMatch(
      /^The token is \[masked:github_token:\w+\], the key begins with \[masked:private_key:\w+\]/,
    );

    const id = first.continuation_offer.continuation_id;
    await chat({ ...local, prompt: 'And?', continuation_id: id });
    const [one, two] = asked(ollama);
    expect(two?.canonical.startsWith(one?.canonical ?? '-')).toBe(true);

    const away = await chat({ model: 'gpt-5.2', prompt: 'You?', continuation_id: id });
    expect(away.isError).toBe(false);
    expect(sentTo(openai)).toContain('[masked:github_token:');
    for (const secret of [token, 'M'.repeat(64)]) {
      expect(sentTo(openai)).not.toContain(secret);
      expect(JSON.stringify([first, away])).not.toContain(secret);
    }
    const stored = await kept();
    expect(stored).not.toContain(token);
    expect(stored).not.toContain('M'.repeat(64));
  });

  it('sees them in the outline of a file that has no room, too', async () => {
    const body = Array.from({ length: 3_000 }, (_, n) => `  keep(${n}, 'what came before');`).join('\n');
    await project.write('conf.ts', `export function open(token = '${token}') {\n${body}\n}\n`);
    const env = { CUSTOM_API_URL: openai.url, CUSTOM_API_KEY: 'test-key', CUSTOM_MODEL_NAME: 'own' };
    const own = { ...env, CUSTOM_CONTEXT_WINDOW: '16000', CUSTOM_RUNS_HERE: 'true' };
    const other = await testProduct({ root: project.root, env: own });
    const reply = await other.call('chat', { prompt: 'Look.', absolute_file_paths: ['.'], model: 'custom:own' });
    await other.close();
    expect(reply.metadata.files.outlined).toEqual([project.path('conf.ts')]);
    expect(sentTo(openai)).toContain(`export function open(token = '${token}')`);
    expect(sentTo(openai)).not.toContain('[masked:');
    expect(JSON.stringify(reply)).not.toContain(token);
  });

  it('repeats a secret that only its file tells into the code it writes, and not beside it', async () => {
    const model = { model_name: 'own', allow_code_generation: true };
    await project.write('models.json', JSON.stringify({ models: [model] }));
    const word = 'q8Zr2Lx0Vw7Tn5Kd';
    await project.write('conf.ts', `const db = 'postgres://me:${word}@127.0.0.1/db';\n`);
    openai.byDefault({ answer: `It is ${word}.\n${artifact(`login('${word}');`)}` });
    const other = await testProduct({
      root: project.root,
      env: {
        CUSTOM_API_URL: openai.url,
        CUSTOM_API_KEY: 'test-key',
        CUSTOM_RUNS_HERE: 'true',
        WRITE_GENERATED_CODE: 'on',
        CUSTOM_MODELS_CONFIG_PATH: project.path('models.json'),
      },
    });
    const args = { prompt: 'Look.', absolute_file_paths: ['conf.ts'], working_directory_absolute_path: project.root };
    const reply = await other.call('chat', { ...args, model: 'custom:own' });
    await other.close();
    expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
    expect(sentTo(openai)).toContain(word);
    expect(await readFile(project.path('polylogue_generated.code'), 'utf8')).toContain(word);
    expect(reply.content).toMatch(/^It is \[masked:/);
    expect(JSON.stringify(reply)).not.toContain(word);
  });

  it('is none that may hand a call on, or that is asked for one that another may have to answer', async () => {
    const env = { CUSTOM_API_URL: openai.url, CUSTOM_API_KEY: 'test-key', CUSTOM_MODEL_NAME: 'own' };
    const run = async (more: Record<string, string>) => {
      const other = await testProduct({ root: project.root, env: { ...env, ...more } });
      await other.call('chat', { prompt: 'Look.', absolute_file_paths: ['conf.ts'], model: 'custom:own' });
      await other.close();
      return asked(openai)
        .at(-1)
        ?.messages.map(({ text }) => text)
        .join('\n');
    };
    expect(await run({})).toContain('[masked:github_token:');
    expect(await run({ CUSTOM_RUNS_HERE: 'true' })).toContain(token);
  });
});
