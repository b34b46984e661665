import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { readFile, symlink } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { UserQuestion } from '../../../../src/core/tool-host.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../../../support/product.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';
import type { FakeVendor } from '../../../support/vendors/fake-vendor.ts';
import { startAnthropic } from '../../../support/vendors/start-anthropic.ts';
import { gateFiles, hostile } from './local-tools/command-vectors.ts';

let project: TempProject;
let outside: TempProject;
let vendor: FakeVendor;
let product: TestProduct | undefined;
beforeEach(async () => {
  project = await tempProject(gateFiles);
  outside = await tempProject({ x: '' });
  await symlink(outside.root, project.path('away'));
  vendor = await startAnthropic();
});
afterEach(async () => {
  await product?.close();
  product = undefined;
  await vendor.close();
  await project.dispose();
  await outside.dispose();
});

async function start(env: Record<string, string>): Promise<TestProduct> {
  product = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent', ...env },
  });
  return product;
}

const commandsOf = (...lines: (readonly string[])[]) =>
  lines.map(argv => ({ name: 'run_command', args: { argv: [...argv] } }));
const call = { task: 'Do it.', model: 'anthropic:claude-sonnet-4-5' };
const outcomes = ({ tool_calls: calls }: Document) => calls.map(({ outcome }: Document) => outcome);

/** A call whose user decides so. */
async function decided(decision: string | undefined, asked: string[]): Promise<Document> {
  const ask = async ({ message }: UserQuestion) => {
    asked.push(message);
    return decision === undefined
      ? { action: 'decline' as const, content: {} }
      : { action: 'accept' as const, content: { decision } };
  };
  const { root, host } = product!.product;
  const principal = { owner: 'local', root };
  const reply = await host.call({ name: 'agent', arguments: call, principal, ask }, new AbortController().signal);
  return reply.document;
}

describe('with everything approved', () => {
  it('no hostile vector is run where nobody can be asked', async () => {
    await start({ AGENT_APPROVE: 'all' });
    // One of each six, of all programs: the others are judged without a model in command-policy.test.ts.
    const vectors = hostile(outside.root).filter((_, at) => at % 6 === 0);
    const rounds = [0, 1, 2].map(at => vectors.slice(at * 32, (at + 1) * 32)).filter(each => each.length > 0);
    vendor.script(...rounds.map(each => ({ calls: commandsOf(...each) })), { answer: 'Done.' });
    const reply = await product!.call('agent', call);
    const told = vendor.requests
      .at(-1)!
      .messages.map(({ text }) => text)
      .join('\n');
    expect(vectors.length).toBeGreaterThan(70);
    expect(told.match(/Refused, and not run/g)).toHaveLength(vectors.length);
    expect(new Set(outcomes(reply))).toEqual(new Set(['refused']));
    expect(readdirSync(outside.root)).toEqual(['x']);
  });

  it('a command in no known form is asked about with all its words, and each approval is for these alone', async () => {
    await start({ AGENT_APPROVE: 'all' });
    const script = ['node', '-e', 'console.log("ran\u202e", 1)'];
    vendor.script(
      { calls: commandsOf(script, script, ['node', '-e', 'console.log(2)'], ['node', '--test', 'test/a.test.js']) },
      { answer: 'Done.' },
    );
    const asked: string[] = [];
    const reply = await decided('allow all of this kind in this run', asked);
    expect(outcomes(reply)).toEqual(['ok', 'ok', 'ok', 'ok']);
    expect(asked).toHaveLength(2);
    expect(asked[0]).toContain(String.raw`node -e "console.log(\"ran\u{202e}\", 1)"`);
    expect(asked[0]).toContain('covers: exactly these words in this directory');
    expect(reply.sandbox).toBe('bubblewrap');
  });
});

it('approves all commands of one known form where the form says so', async () => {
  await start({});
  vendor.script(
    {
      calls: commandsOf(
        ['node', '--test', 'test/a.test.js'],
        ['node', '--test', 'test'],
        ['node', '--test', '--import=./evil.mjs'],
        ['git', 'status'],
      ),
    },
    { answer: 'Done.' },
  );
  const asked: string[] = [];
  const reply = await decided('allow all of this kind in this run', asked);
  const always = 'allow all of this kind in this run';
  expect(reply.tool_calls.map(({ approval }: Document) => approval)).toEqual([always, undefined, always, always]);
  expect(asked).toHaveLength(3);
  expect(asked[0]).toContain('covers: every "node --test" in a known form, with files of the project');
  expect(asked[1]).toContain('--import=./evil.mjs');
});

it('refuses a command in no known form where nothing is approved, without asking', async () => {
  await start({ AGENT_APPROVE: 'never' });
  vendor.script({ calls: commandsOf(['node', '-e', '1'], ['node', '--test', 'test/a.test.js']) }, { answer: 'Done.' });
  const asked: string[] = [];
  const reply = await decided('allow', asked);
  expect(outcomes(reply)).toEqual(['refused', 'ok']);
  expect(reply.tool_calls.map(({ approval }: Document) => approval)).toEqual([undefined, 'allow']);
  expect(asked).toHaveLength(1);
});

describe('what the project itself runs, behind a gate that lets it pass', () => {
  let home: TempProject;
  let server: Server;
  let reached = 0;
  beforeAll(async () => {
    server = createServer(socket => {
      reached += 1;
      socket.destroy();
    });
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  });
  beforeEach(async () => {
    reached = 0;
    home = await tempProject({ '.ssh/id': 'words of a key', '.aws/credentials': 'words of an account' });
    await outside.write('kept.txt', 'old');
    const { port } = server.address() as AddressInfo;
    const read = (path: string) => `try { console.log(readFileSync(${JSON.stringify(path)}, 'utf8')); } catch {}`;
    await project.write(
      'Makefile',
      `.PHONY: test\ntest:\n\techo inside > made.txt\n\t-echo new > ${outside.path('made')}\n\t-echo more >> ${outside.path('kept.txt')}\n\t-rm ${outside.path('x')}\n`,
    );
    await project.write(
      'test/a.test.js',
      `const { readFileSync } = require('node:fs');\n${read(home.path('.ssh/id'))}\n${read(home.path('.aws/credentials'))}\nconsole.log(readFileSync('notes.txt', 'utf8'));`,
    );
    await project.write(
      'test/b.test.js',
      `require('node:net').connect(${port}, '127.0.0.1', () => console.log('reached')).on('error', () => {});`,
    );
    await project.write('notes.txt', 'words of the project');
  });
  afterEach(() => home.dispose());
  afterAll(async () => void (await new Promise(done => server.close(done))));

  /** What came of the three commands of one run. */
  async function effects(env: Record<string, string>) {
    await product?.close();
    product = await testProduct({
      root: project.root,
      homeDir: home.root,
      env: {
        ...{ ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent', POLYLOGUE_STORE: 'memory' },
        ...{ AGENT_APPROVE: 'all', ...env },
      },
    });
    vendor.script(
      {
        calls: commandsOf(['make', 'test'], ['node', '--test', 'test/a.test.js'], ['node', '--test', 'test/b.test.js']),
      },
      { answer: 'Done.' },
    );
    const { sandbox, tool_calls: calls } = await product.call('agent', call);
    const told = vendor.requests.at(-1)!.messages.map(({ text }) => text);
    const text = (file: string) => readFile(outside.path(file), 'utf8').catch(() => undefined);
    return {
      sandbox,
      refused: calls.filter(({ outcome }: Document) => outcome === 'refused' || outcome === 'invalid').length,
      outside: { made: await text('made'), kept: await text('kept.txt'), x: await text('x') },
      read: ['words of a key', 'words of an account'].filter(words => told.join('\n').includes(words)),
      reached: reached > 0,
      inside: await readFile(project.path('made.txt'), 'utf8').catch(() => undefined),
      readInside: told.join('\n').includes('words of the project'),
    };
  }

  const inside = { refused: 0, inside: 'inside\n', readInside: true };
  const untouched = { made: undefined, kept: 'old', x: '' };

  it('changes nothing outside, reads no secret of the home folder and reaches nobody', async () => {
    expect(await effects({})).toEqual({
      ...{ ...inside, sandbox: 'bubblewrap', outside: untouched, read: [], reached: false },
    });
    const online = { ...inside, sandbox: 'bubblewrap', outside: untouched, read: [], reached: true };
    expect(await effects({ AGENT_SANDBOX: 'require', AGENT_NETWORK: 'true' })).toEqual(online);
  });

  it('does all of that without the sandbox', async () => {
    expect(await effects({ AGENT_SANDBOX: 'off' })).toEqual({
      ...{ ...inside, sandbox: 'none: AGENT_SANDBOX is off', reached: true },
      outside: { made: 'new\n', kept: 'oldmore\n', x: undefined },
      read: ['words of a key', 'words of an account'],
    });
  });
});

it('runs in no sandbox where it is switched off, and no agent where one is required and missing', async () => {
  await start({ AGENT_APPROVE: 'all', AGENT_SANDBOX: 'off' });
  vendor.script({ calls: commandsOf(['node', '--test', 'test/a.test.js']) }, { answer: 'Done.' });
  expect(await product!.call('agent', call)).toMatchObject({ sandbox: 'none: AGENT_SANDBOX is off' });
  await product!.close();
  const before = vendor.requests.length;
  product = await testProduct({
    root: project.root,
    env: { ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent', AGENT_SANDBOX: 'require' },
    childEnv: { PATH: '/nowhere' },
  });
  const reply = await product.call('agent', call);
  expect(reply).toMatchObject({ isError: true });
  expect(JSON.stringify(reply)).toContain('AGENT_SANDBOX');
  expect(vendor.requests).toHaveLength(before);
});

it('answers git without secret files, and starts nothing that the repository names', async () => {
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: project.root });
  git('init', '-q');
  git('add', '-f', '.');
  git('commit', '-qm', 'one');
  await project.write('.env', 'KEY=second\n');
  await project.write('notes.txt', 'changed\n');
  git('add', '-f', '.');
  git('commit', '-qm', 'two');
  await project.write('.env', 'KEY=third\n');
  await project.write('src/a.ts', 'export const a = 1;\n');
  const evil = `touch ${project.path('evil')}`;
  for (const name of [
    'core.fsmonitor',
    'diff.external',
    'core.pager',
    'diff.x.textconv',
    'filter.x.clean',
    'gpg.program',
  ])
    git('config', name, evil);
  git('config', 'log.showSignature', 'true');
  await project.write('.gitattributes', '* diff=x filter=x\n');
  await start({ AGENT_APPROVE: 'all', AGENT_SANDBOX: 'off' });
  vendor.script(
    {
      calls: commandsOf(
        ...[
          'git status',
          'git diff',
          'git diff HEAD~1',
          'git log -5 --oneline',
          'git show HEAD',
          'git diff --stat',
        ].map(line => line.split(' ')),
      ),
    },
    { answer: 'Done.' },
  );
  const reply = await product!.call('agent', call);
  expect(outcomes(reply)).toEqual(Array(6).fill('ok'));
  const told = vendor.requests
    .at(-1)!
    .messages.map(({ text }) => text)
    .join('\n');
  expect(told).toContain('+changed');
  expect(told).toContain('+export const a = 1;');
  expect(told).toContain('unstaged, modified: src/a.ts');
  for (const secret of ['KEY=1', 'KEY=second', 'KEY=third']) expect(told).not.toContain(secret);
  expect(readdirSync(project.root)).not.toContain('evil');
});
