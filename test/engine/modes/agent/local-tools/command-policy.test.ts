import { realpath, rm, symlink } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { judgeCommand } from '../../../../../src/engine/modes/agent/local-tools/command-policy.ts';
import { createSandbox } from '../../../../../src/workspace/sandbox.ts';
import { type TempProject, tempProject } from '../../../../support/temp-project.ts';
import { gateFiles, hostile, ordinary } from './command-vectors.ts';

let project: TempProject;
let outside: TempProject;
beforeAll(async () => {
  project = await tempProject(gateFiles);
  outside = await tempProject({ x: '', 'x.ts': '', 'evil.js': '', 'test_x.py': '', 'tsconfig.json': '{}' });
  await symlink(outside.root, project.path('away'));
});
afterAll(async () => {
  await project.dispose();
  await outside.dispose();
});

async function judge(argv: readonly string[], entries?: readonly string[], cwd = '') {
  const root = await realpath(project.root);
  const sandbox = createSandbox({ roots: [root, outside.root], allowSecrets: false });
  return judgeCommand({ argv, cwd: await realpath(project.path(cwd)), project: root, sandbox, entries });
}

describe('the gate of commands', () => {
  it('lets the ordinary commands pass', async () => {
    expect(ordinary.length).toBeGreaterThanOrEqual(40);
    const verdicts = await Promise.all(ordinary.map(async argv => [argv.join(' '), await judge(argv)] as const));
    expect(verdicts.filter(([, verdict]) => 'unknown' in verdict)).toEqual([]);
  });

  it('lets none of the vectors pass that execute or write elsewhere', async () => {
    const vectors = hostile(outside.root);
    expect(new Set(vectors.map(argv => argv.join(' '))).size).toBeGreaterThanOrEqual(300);
    const passed: string[] = [];
    for (const argv of vectors) if ('form' in (await judge(argv))) passed.push(argv.join(' '));
    expect(passed).toEqual([]);
    console.log(
      `${vectors.length} hostile vectors, ${passed.length} passed; ${ordinary.length} ordinary ones, all passed`,
    );
  });

  it('takes no link that leads to nothing, no word for a shell, and no folder of what was installed', async () => {
    await symlink(outside.path('none'), project.path('dangling'));
    await project.write('node_modules/dep/package.json', '{}');
    for (const line of [
      'npm test dangling',
      'node --test dangling/a',
      'npm test a;b',
      'pytest tests/a|b',
      'git diff HEAD~1 HEAD',
      'tsc --noEmit -p src',
      'python -m unittest ../evil',
      'python -m unittest src/a',
    ]) {
      expect(await judge(line.split(' ')), line).toMatchObject({ unknown: expect.any(String) });
    }
    expect(await judge(['npm', 'test'], undefined, 'node_modules/dep')).toMatchObject({ unknown: expect.any(String) });
    expect(await judge(['npx', 'vitest', 'test'], ['npx *'])).toMatchObject({ form: 'npx *' });
    expect(await judge(['npx', 'evil'], ['npx *'])).toMatchObject({ unknown: expect.any(String) });
  });

  it('has no words with control characters', async () => {
    for (const argv of [
      ['npm', 'test\nrm'],
      ['npm', 'test', '--', 'a\0b'],
      ['git', 'log', '\u009b2J'],
    ]) {
      expect(await judge(argv)).toMatchObject({ unknown: expect.stringContaining('control') });
    }
  });

  it('keeps the exact words of the operator, and judges what follows them alike', async () => {
    const own = ['node --import tsx --test', 'node *', 'npx eslint', 'npx vitest', 'npm run *', './tool.sh'];
    own.push('python -m unittest -v discover');
    for (const line of [
      'node --import tsx --test test/a.test.js',
      'node test/a.test.js src/a.ts',
      'npm run deploy',
      './tool.sh src/a.ts',
      'node --import tsx --test --test-only test/a.test.js',
      'python -m unittest -v discover -s src',
    ]) {
      expect(await judge(line.split(' '), own), line).toMatchObject({ form: expect.any(String) });
    }
    for (const line of [
      'node --import tsx --test --import evil',
      'node ../evil.js',
      'node away/evil.js',
      'node -e',
      'node test/a.test.js --out=x',
      'npx eslint src',
      'npx vitest --bail=1',
      'npm run deploy --script-shell=x',
      './tool.sh -x',
      'npm test',
      'make test',
    ]) {
      expect(await judge(line.split(' '), own), line).toMatchObject({ unknown: expect.any(String) });
    }
  });

  it('asks where a program would use what lies above the project', async () => {
    const top = await tempProject({
      'package.json': '{"scripts": {"test": "evil"}}',
      'node_modules/.bin/vitest': '',
      'pytest.ini': '',
      'project/src/a.ts': '',
    });
    const root = await realpath(top.path('project'));
    const sandbox = createSandbox({ roots: [root], allowSecrets: false });
    for (const line of ['npm test', 'npx vitest run', 'pytest']) {
      const verdict = await judgeCommand({ argv: line.split(' '), cwd: root, project: root, sandbox });
      expect(verdict, line).toMatchObject({ unknown: expect.any(String) });
    }
    await top.write('project/pyproject.toml', '[project]\n');
    const judged = () => judgeCommand({ argv: ['pytest'], cwd: root, project: root, sandbox });
    expect(await judged()).toMatchObject({ unknown: expect.stringContaining('pytest.ini') });
    await top.write('project/pytest.ini', '');
    expect(await judged()).toMatchObject({ form: 'pytest' });
    await top.dispose();
  });

  it.each([
    ['npm test', 'package.json'],
    ['npx jest', 'package.json'],
    ['npx tsc --noEmit', 'tsconfig.json'],
    ['pytest', 'pytest.ini'],
    ['pytest', 'pyproject.toml'],
    ['pytest', 'tox.ini'],
    ['pytest', 'setup.cfg'],
    ['pytest', 'setup.py'],
    ['pytest', 'conftest.py'],
    ['pytest', 'pytest.toml'],
    ['cargo test', '.cargo/config.toml'],
    ['cargo test', 'rust-toolchain.toml'],
    ['go test ./...', 'go.mod'],
    ['go test ./...', 'go.work'],
    ['cargo test', 'Cargo.toml'],
  ])('asks before %s where %s lies above the project alone', async (line, file) => {
    const bin = 'mid/project/node_modules/.bin';
    const top = await tempProject({ [file]: '', [`${bin}/tsc`]: '', [`${bin}/jest`]: '', 'mid/project/src/a.ts': '' });
    const root = await realpath(top.path('mid/project'));
    const sandbox = createSandbox({ roots: [root], allowSecrets: false });
    const judged = (cwd = root) => judgeCommand({ argv: line.split(' '), cwd, project: root, sandbox });
    expect(await judged()).toMatchObject({
      unknown: `it would use ${await realpath(top.path(file))}, outside of the project`,
    });
    await top.dispose();
  });

  it.each([
    ['go test ./...', 'go.mod', 'go.work'],
    ['cargo test', 'Cargo.toml', '.cargo/config.toml'],
  ])(
    'asks before %s where there is %s, and %s above the project, which counts all the same',
    async (line, own, above) => {
      const top = await tempProject({ [above]: '', [`project/${own}`]: '', 'project/a.go': '' });
      const root = await realpath(top.path('project'));
      const sandbox = createSandbox({ roots: [root], allowSecrets: false });
      const judged = () => judgeCommand({ argv: line.split(' '), cwd: root, project: root, sandbox });
      expect(await judged()).toMatchObject({ unknown: expect.stringContaining(above) });
      await rm(top.path(above));
      expect(await judged()).toMatchObject({ form: expect.any(String) });
      // The user's own settings are used everywhere.
      await top.write('.cargo/config.toml', '');
      await top.write('.cargo/registry/x', '');
      expect(await judged()).toMatchObject({ form: expect.any(String) });
      await top.dispose();
    },
  );

  it('takes no file of arguments for a value', async () => {
    for (const option of ['-k', '-m'])
      expect(await judge(['pytest', option, '@args.txt'])).toMatchObject({ unknown: expect.any(String) });
  });

  it('takes the name of a program for its known forms, and of another for what follows it in the project', async () => {
    await project.write('publish', '');
    for (const line of [
      'npm install evil',
      'npm exec evil',
      'npm publish',
      'git push',
      'cargo install evil',
      'pip install x',
    ])
      expect(await judge(line.split(' '), ['npm', 'git', 'cargo', 'pip']), line).toMatchObject({
        unknown: expect.any(String),
      });
    await rm(project.path('publish'));
    expect(await judge(['mytool', 'src'], ['mytool'])).toMatchObject({ form: 'mytool' });
    expect(await judge(['mytool', 'install'], ['mytool'])).toMatchObject({ unknown: expect.any(String) });
  });

  it('takes an entry with blanks around it, and none whose last word is missing', async () => {
    expect(await judge(['node', 'test/a.test.js'], ['  node   * '])).toMatchObject({ form: expect.any(String) });
    expect(await judge(['npx'], ['npx *'])).toMatchObject({ unknown: expect.any(String) });
    expect(await judge(['evil'], ['*'])).toMatchObject({ unknown: expect.any(String) });
  });
});
