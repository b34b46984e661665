import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createMask } from '../../src/observability/secret-masking.ts';
import { runProgram } from '../cli/run-program.ts';
import { dashboardClient } from '../support/dashboard-client.ts';
import { gitRepository } from '../support/git-repository.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import { code, keyLines, secretShapes } from '../support/secret-shapes.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const shapes = secretShapes();
const all = shapes.map(({ text }) => text).join('\n---\nSome words.\n\n');
const coloured = all.replaceAll(/\S+/g, word => `\x1b[31m${word}\x1b[0m`);
const glued = shapes.slice(0, 80).map(({ text }) => text.replace(/key: (\S+)/, 'key: \x1b[1mx$1'));

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;
/** The data folder of the program, run by its commands. */
let programHome: TempProject;
/** What came out, by the way it went. */
const ways = new Map<string, string>();

beforeAll(async () => {
  vendor = await startOpenAi();
  [project, programHome] = await Promise.all([tempProject(), tempProject()]);
  const repo = await gitRepository(project.root);
  const key = ['-----BEGIN PRIVATE KEY-----', ...keyLines, '-----END PRIVATE KEY-----', ''];
  await project.write('all.txt', 'Nothing.\n');
  await project.write('fixture.txt', key.join('\n'));
  await project.write('narrow.txt', narrow({}));
  await repo.commit();
  await project.write('narrow.txt', narrow({ 9: narrowLines[20] }));
  await repo.commit();
  await project.write('narrow.txt', narrow({ 9: narrowLines[21] }));
  await project.write('tokens.json', JSON.stringify({ tokens: [{ name: 'local', token: dashboardToken }] }));
  await project.write('all.txt', `${all}\n`);
  await project.write('coloured.txt', `${coloured}\n`);
  await project.write('fixture.txt', key.map((line, at) => (at === 7 ? code64(line) : line)).join('\n'));
  await repo.git('add', 'all.txt', 'fixture.txt', 'narrow.txt');
  const env = {
    ...vendorEnv({ openai: vendor.url }),
    DEFAULT_MODEL: 'gpt-5.2',
    LOG_LEVEL: 'debug',
    COMMS_LOG: 'on',
    AGENT_COMMANDS: 'cat',
    POLYLOGUE_TOKENS_FILE: join(project.root, 'tokens.json'),
    POLYLOGUE_TOOLSETS: 'core,code,wrapper,ops,agent',
    AGENT_APPROVE: 'all',
  };
  polylogue = await testProduct({ root: project.root, env });
});
afterAll(async () => {
  await polylogue.close();
  await vendor.close();
  await project.dispose();
  await programHome.dispose();
});

/** Another line of the same key: what a hunk shows of it has neither its head nor its end. */
const code64 = (line: string) => [...line].toReversed().join('');

/** Lines too short to be known for a key's by themselves: the hunk of one shows neither the head nor the end of its key. */
const narrowLines = Array.from({ length: 22 }, () => code(32, 'base64'));

function narrow(changed: Record<number, string | undefined>): string {
  const lines = narrowLines.slice(0, 20).map((line, at) => changed[at] ?? line);
  return ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n');
}

const dashboardToken = ['dashboard', 'token', '0123456789'].join('-');

async function along(way: string, go: () => Promise<unknown>): Promise<Document> {
  const before = vendor.requests.length;
  const reply = await go();
  const sent = vendor.requests.slice(before).map(({ body }) => JSON.stringify(body));
  ways.set(way, unescaped(sent.join('\n')));
  ways.set(`reply to ${way}`, unescaped(JSON.stringify(reply)));
  return reply;
}

/** As in `npm test 2>&1 | polylogue diagnose`: colours, bars of progress, the middle of a key, and lines that are no secret. */
async function alongStandardInput(): Promise<void> {
  const bar = '\r\x1b[2K\x1b[1A\x1b]8;;https://ci.example.test\x07 FAIL \x1b]8;;\x07 src/a.test.ts\x1b[0K\n';
  const middle = keyLines.slice(4, 9).map(line => `\x1b[90m  |\x1b[39m \x1b[32m${line}\x1b[39m`);
  const most = 50_000;
  const shown = shapes.map(({ text }) => text.replaceAll(/\S+/g, word => `\x1b[38;5;9m${word}\x1b[0m`));
  // As a search marks what it found.
  const marked = shapes.map(({ text }) =>
    text.replaceAll(/\S{12,}/g, word => `${word.slice(0, 9)}\x1b[7m${word.slice(9)}`),
  );
  const pieces = [middle, glued, [...shown, ...marked]].flatMap(lines => inPieces(lines, most));
  for (const [at, piece] of pieces.entries()) {
    const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5.2', COMMS_LOG: 'on', LOG_LEVEL: 'debug' };
    const run = () =>
      runProgram(['diagnose', 'npm', 'test', '--without-patch'], {
        cwd: project.root,
        env: { ...env, PROJECT_ROOT: project.root, POLYLOGUE_HOME: programHome.root, PATH: process.env.PATH ?? '' },
        input: `${bar}Expected 12, received 13\n${piece}\n`,
      });
    const reply = await along(`standard input ${at + 1}`, run);
    expect(reply).toMatchObject({ code: 0 });
    expect(ways.get(`standard input ${at + 1}`)).toContain('Expected 12, received 13');
  }
  for (const [name, text] of await filesIn(programHome.root)) ways.set(`disk of diagnose: ${name}`, text);
}

function inPieces(texts: readonly string[], most: number): string[] {
  const pieces = [''];
  for (const text of texts) {
    const last = `${pieces.at(-1)}${text}\n\n`;
    if (last.length > most) pieces.push(`${text}\n\n`);
    else pieces.splice(-1, 1, last);
  }
  return pieces;
}

async function filesIn(folder: string): Promise<[string, string][]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter(entry => entry.isFile());
  return Promise.all(
    files.map(
      async ({ name, parentPath }): Promise<[string, string]> => [
        name,
        unescaped(await readFile(join(parentPath, name), 'latin1')),
      ],
    ),
  );
}

/** Every page of a thread or of a call that the lists link to. */
async function alongDashboard(): Promise<void> {
  const daemon = await polylogue.product.openDaemon({ host: '127.0.0.1', port: 0 });
  try {
    const { page } = dashboardClient(daemon.url, { token: dashboardToken });
    const lists = await Promise.all(['/', '/threads', '/spend', '/providers'].map(page));
    const paths = lists.flatMap(text =>
      [...text.matchAll(/href="(\/(?:calls|threads)\/[0-9a-f-]{36})"/g)].map(([, path = '']) => path),
    );
    expect(paths.length).toBeGreaterThan(5);
    const pages = await Promise.all([...new Set(paths)].map(page));
    ways.set('dashboard', ofMarkup([...lists, ...pages].join('\n')));
  } finally {
    await daemon.close();
  }
}

function ofMarkup(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}

/** As a reader has it: without the escapes of JSON and the colours of a terminal. */
function unescaped(text: string): string {
  const plain = text.replaceAll('\\\\', '\\').replaceAll('\\"', '"');
  return plain.replaceAll('\x1b[', '\\u001b[').replaceAll(/\\u001b\[[\d;]*[A-Za-z]/g, '');
}

it('lets no shape of a secret through, whichever way it goes', { timeout: 120_000 }, async () => {
  const chat = (args: Document) => polylogue.call('chat', args);
  const onto = { model: 'openai:gpt-5.2' };
  const first = await along('prompt', () => chat({ prompt: `Why?\n${all}` }));
  const id = first.continuation_offer.continuation_id;
  await along('second turn', () => chat({ prompt: 'Again.', continuation_id: id }));
  await along('file', () => chat({ prompt: 'Look.', absolute_file_paths: ['all.txt'] }));
  await along('coloured file', () => chat({ prompt: 'Look.', absolute_file_paths: ['coloured.txt'] }));
  await along('coloured prompt', () => chat({ prompt: coloured }));
  await along('glued letters', () => chat({ prompt: glued.join('\n\n') }));
  await along('diagnose', () => polylogue.call('diagnose', { stderr: `Error: no.\n${coloured.slice(0, 60_000)}` }));
  await alongStandardInput();
  const step = { step: 'Look.', step_number: 1, total_steps: 1, next_step_required: false, findings: 'None.' };
  await along('precommit', () => polylogue.call('precommit', { ...step, path: '.' }));
  const hands: [string, Document][] = [
    ['read_file', { path: 'all.txt' }],
    ['git_diff', {}],
    ['git_show', { ref: 'HEAD' }],
    ['search_text', { texts: ['password', 'key: '] }],
    ['run_command', { argv: ['cat', 'coloured.txt'] }],
  ];
  for (const [name, args] of hands) {
    vendor.script({ calls: [{ name, args }] }, { answer: 'Done.' });
    await along(name, () => polylogue.call('agent', { task: 'Look.', ...onto, max_rounds: 3 }));
  }
  vendor.byDefault({
    answer: `You sent:\n${shapes
      .filter(isFormat)
      .map(({ text }) => text)
      .join('\n')}\nEnd.`,
  });
  const streamed: string[] = [];
  const request = { name: 'chat', arguments: { prompt: 'Repeat.' }, principal: { owner: 'local', root: project.root } };
  const onText = (delta: string) => void streamed.push(delta);
  await along('answer', () => polylogue.product.host.call({ ...request, onText }, new AbortController().signal));
  ways.set('stream', streamed.join(''));
  await along('export', () => polylogue.call('export_thread', { continuation_id: id, format: 'md' }));
  await alongDashboard();
  await polylogue.product.close();
  for (const [name, text] of await filesIn(polylogue.home)) ways.set(`disk: ${name}`, text);
  ways.set('stderr', polylogue.log.join('\n'));

  const table = [...ways].map(([way, text]) => {
    const lines = [...keyLines, ...narrowLines].map(line => ({ name: 'key of a hunk', secret: line }));
    const through = [...shapes, ...lines].filter(({ secret }) => text.includes(secret)).map(({ name }) => name);
    return { way, characters: text.length, through };
  });
  console.log(
    [
      `${shapes.length} shapes, ${table.length} ways`,
      ...table.map(({ way, characters, through }) => `${way} | ${characters} | ${through.length}`),
    ].join('\n'),
  );
  expect(shapes.length).toBeGreaterThanOrEqual(200);
  for (const way of [
    'prompt',
    'file',
    'coloured file',
    'diagnose',
    'standard input 1',
    'standard input 2',
    'disk of diagnose: comms.jsonl',
    'precommit',
    'read_file',
    'git_diff',
    'git_show',
    'search_text',
    'run_command',
    'reply to export',
    'dashboard',
    'disk: comms.jsonl',
  ]) {
    expect(ways.get(way), way).toContain('[masked:');
  }
  expect(table.filter(({ through }) => through.length > 0)).toEqual([]);
});

/** What a model writes is masked where its form tells it; passwords that only their name tells are its own. */
function isFormat({ text }: { text: string }): boolean {
  return text.startsWith('key: ');
}

/** Finds in the packages that are installed. The code before this test had 2 in the same files. */
it('masks next to nothing in 20 MB of code that others wrote', { timeout: 120_000 }, async () => {
  const { maskSync } = createMask({ secret: 'pepper', keys: [] });
  const found: string[] = [];
  let size = 0;
  for await (const path of codeIn(fileURLToPath(new URL('../../node_modules/', import.meta.url)))) {
    const text = await readFile(path, 'utf8');
    if (text.length > 1_000_000) continue;
    for (const { start, end, kind } of maskSync(text, 't').places ?? []) {
      found.push(`${path}: ${kind}: ${text.slice(start, Math.min(end, start + 60))}`);
    }
    size += text.length;
    if (size > 20_000_000) break;
  }
  console.log(`${found.length} finds in ${(size / 1e6).toFixed(1)} MB`);
  expect(size).toBeGreaterThan(20_000_000);
  expect(found.length).toBeLessThanOrEqual(2);
});

async function* codeIn(folder: string): AsyncGenerator<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    // What is fetched for the tests comes and goes.
    if (entry.name.startsWith('.')) continue;
    if (entry.isDirectory()) yield* codeIn(path);
    else if (entry.isFile() && /\.(?:[cm]?[jt]s|json|md|ya?ml|css|html)$/.test(entry.name)) yield path;
  }
}

it.each([
  'const id = "550e8400-e29b-41d4-a716-446655440000";',
  '"integrity": "sha384-' + 'oqVuAfXRKap7fdgcCY5uykM6cRs1aKwBlIlSJQeRoPu3sQ0lNgw8dE7hY2mC4vT9' + '"',
  '//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXSwibmFtZXMiOltdLCJtYXBwaW5ncyI6IiJ9',
  `-----BEGIN CERTIFICATE-----\n${keyLines.slice(0, 4).join('\n')}\n-----END CERTIFICATE-----`,
  '0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0  file.tgz',
  'const token = process.env.GITHUB_TOKEN; const password = await getPassword2();',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template is what the text is
  'password: ${DB_PASSWORD1}\n- name: DB_PASSWORD\n  valueFrom: { secretKeyRef: { name: db, key: password } }\n',
  'tool --password <password> --token $TOKEN; curl -u "$USER:$PASS" https://host',
  "page.fill('#user-password', value); password: string; secret?: string;",
  '\x1b[31mexpected\x1b[0m 12 to equal \x1b[32m13\x1b[0m',
  'the disk-usage and task-0123456789abcdef0123456789 of mask-image',
  'import x from "https://esm.sh/@scope/pkg@1.2.3/path"; // see user@example.org',
])('leaves alone what is no secret: %j', text => {
  expect(createMask({ secret: 'pepper', keys: [] }).maskSync(text, 't').text).toBe(text);
});
