import { readdirSync } from 'node:fs';
import { chmod, mkdir, symlink } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findProgram, programFolders, programNamed } from '../../src/workspace/programs.ts';
import { type Document, testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { startAnthropic } from '../support/vendors/start-anthropic.ts';

let place: TempProject;
let project: string;
const programs = [
  'system/git',
  'repo/git',
  'repo/bin/git',
  'repo/node_modules/.bin/git',
  'repo/project/git',
  'repo/project/tools/git',
  'repo/project/node_modules/.bin/git',
];
beforeEach(async () => {
  place = await tempProject(Object.fromEntries(programs.map(name => [name, '#!/bin/sh\ntouch "$0.was-run"\n'])));
  for (const name of programs) await chmod(place.path(name), 0o755);
  project = place.path('repo/project');
});
afterEach(() => place.dispose());

const search = (...folders: string[]) => ({
  env: { PATH: [...folders, place.path('system')].join(':'), HOME: '/nobody' },
  projects: [project],
  platform: 'linux',
});

describe('a program', () => {
  it('is never one of the project, of a repository around it, or of a relative folder', async () => {
    await mkdir(place.path('repo/.git'));
    await symlink(place.path('repo/project/tools'), place.path('linked'));
    await mkdir(place.path('links'));
    await symlink(place.path('repo/project/tools/git'), place.path('links/git'));
    const hostile = [
      ...['', '.', './', '..', 'tools', './tools', project, `${project}/tools`, `${project}/../project/tools`],
      ...[
        `${project}/node_modules/.bin`,
        place.path('repo/node_modules/.bin'),
        place.path('repo/bin'),
        place.path('repo'),
      ],
      ...[place.path('linked'), place.path('links')],
    ];
    for (const folder of hostile) {
      expect(await findProgram('git', search(folder)), folder).toBe(place.path('system/git'));
      if (folder !== place.path('links')) expect(await programFolders(search(folder))).toEqual([place.path('system')]);
    }
    expect(await findProgram('./git', search())).toBeUndefined();
    await expect(programNamed('not-there', search())).rejects.toMatchObject({ kind: 'config' });
  });

  it('is found in the home folder, also where that is what is served, and beside a project without a repository', async () => {
    expect(await findProgram('git', search(place.path('repo/bin')))).toBe(place.path('repo/bin/git'));
    const home = { ...search(place.path('repo/bin')), projects: [place.root] };
    expect(await findProgram('git', { ...home, env: { ...home.env, HOME: place.path('repo') } })).toBe(
      place.path('repo/bin/git'),
    );
    // The packages above a project are its packages all the same.
    expect(await findProgram('git', search(place.path('repo/node_modules/.bin')))).toBe(place.path('system/git'));
  });
});

it('starts none of them for precommit, the tools of an agent, or what its commands start', async () => {
  await mkdir(place.path('repo/.git'));
  await place.write(
    'repo/project/a.test.mjs',
    "import { execSync } from 'node:child_process';\nconsole.log(execSync('git --version').toString());\n",
  );
  const vendor = await startAnthropic();
  const product = await testProduct({
    root: project,
    env: { ...vendorEnv({ anthropic: vendor.url }), POLYLOGUE_TOOLSETS: 'core,agent', AGENT_APPROVE: 'all' },
    childEnv: {
      PATH: ['.', '', 'tools', `${project}/tools`, place.path('repo/node_modules/.bin'), process.env.PATH].join(':'),
      HOME: place.path('system'),
    },
  });
  const patch = '--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n';
  vendor.script(
    {
      calls: [
        { name: 'git_log', args: {} },
        { name: 'git_diff', args: {} },
        { name: 'run_command', args: { argv: ['git', 'status'] } },
        { name: 'apply_patch', args: { patch } },
        { name: 'run_command', args: { argv: ['node', '--test', 'a.test.mjs'] } },
      ],
    },
    { answer: 'Done.' },
  );
  const reply: Document = await product.call('agent', { task: 'Do it.', model: 'anthropic:claude-sonnet-4-5' });
  await product.close();
  await vendor.close();
  const started = readdirSync(place.root, { recursive: true }).filter(name => String(name).endsWith('.was-run'));
  expect(started).toEqual([]);
  expect(reply.tool_calls.slice(3).map(({ outcome }: Document) => outcome)).toEqual(['ok', 'ok']);
});
