import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findFrames, readFrames, referencesOf } from '../../../../src/engine/modes/diagnose/stack-frames.ts';
import { createSandbox } from '../../../../src/workspace/sandbox.ts';
import { type TempProject, tempProject } from '../../../support/temp-project.ts';

let project: TempProject;

beforeEach(async () => {
  project = await tempProject({
    'main.py': 'x\n',
    'src/app/cart.ts': 'x\n',
    'src/a/same.ts': 'x\n',
    'src/b/same.ts': 'x\n',
    'json/decoder.py': 'x\n',
    'node_modules/dep/index.js': 'x\n',
    'long.ts': 'const line = 0;\n'.repeat(2_000),
  });
});
afterEach(() => project.dispose());

const options = () => ({
  sandbox: createSandbox({ roots: [project.root], allowSecrets: false }),
  home: '',
  root: project.root,
  maxFileBytes: 1_000_000,
  signal: new AbortController().signal,
});
const found = async (text: string) =>
  (await findFrames(options(), readFrames(text))).map(({ path, lines }) => [
    path.slice(project.root.length + 1),
    ...lines,
  ]);

describe('the files that an error speaks of', () => {
  it.each([
    ['as they are written', () => `${project.path('src/app/cart.ts')}:3`, [['src/app/cart.ts', 3]]],
    ['from the project', () => 'src/app/cart.ts:3\nsrc/app/cart.ts:9', [['src/app/cart.ts', 3, 9]]],
    ['by the end of a path of another machine', () => '/srv/build/app/cart.ts:3', [['src/app/cart.ts', 3]]],
    ['on top of the project, by a path of another machine', () => 'File "/srv/x/main.py", line 4', [['main.py', 4]]],
    ['not where two files fit', () => '/srv/elsewhere/same.ts:1', []],
    ['not by a name that may be anybody’s', () => 'File "/usr/lib/python3/decoder.py", line 4', []],
    ['not in the packages of others', () => `${project.path('node_modules/dep/index.js')}:1`, []],
    ['not outside the roots', () => '/etc/hosts.conf:1', []],
  ])('are found %s', async (_how, text, files) => {
    expect(await found(text())).toEqual(files);
  });

  it('go along whole, or with what stands around the lines', async () => {
    const files = await findFrames(options(), readFrames('main.py:1\nlong.ts:1000'));
    expect(await referencesOf(options(), files)).toEqual([
      project.path('main.py'),
      `${project.path('long.ts')}:920-1080`,
    ]);
  });
});
