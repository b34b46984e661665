import { cp, mkdir, mkdtemp, readdir, realpath, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { gitRepository } from '../support/git-repository.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from '../support/product.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { step } from '../tools/workflow-rig.ts';

const canary = 'CANARY-of-another-project';

let base: string;
/** The repository outside: its objects loose, and a copy in which they are packed. */
let loose: string;
let packed: string;
let root: string;
let vendor: FakeVendor;
let polylogue: TestProduct;

beforeAll(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'polylogue-outside-')));
  root = join(base, 'roots', 'project');
  await mkdir(root, { recursive: true });
  const theirs = await gitRepository(join(base, 'theirs'));
  await rm(join(theirs.path, '.git', 'hooks'), { recursive: true, force: true });
  await theirs.write('a.txt', `${canary} first\n`);
  await theirs.commit('first');
  await theirs.write('a.txt', `${canary} second\n`);
  await theirs.commit(`second ${canary}`);
  loose = join(theirs.path, '.git');
  const copy = join(base, 'packed');
  await cp(theirs.path, copy, { recursive: true });
  packed = join(copy, '.git');
  await theirs.git('-C', copy, 'commit-graph', 'write', '--reachable', '--split');
  await theirs.git('-C', copy, 'repack', '-a', '-d', '-q', '--write-midx');
  await theirs.git('-C', copy, 'pack-refs', '--all');
  vendor = await startOpenAi();
  vendor.byDefault({ answer: 'Fine.\n\nRECOMMENDATION: GO' });
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5.2', STORE: 'memory' };
  const childEnv = {
    PATH: process.env.PATH ?? '',
    HOME: base,
    GIT_OBJECT_DIRECTORY: join(loose, 'objects'),
    GIT_ALTERNATE_OBJECT_DIRECTORIES: join(loose, 'objects'),
    GIT_COMMON_DIR: loose,
    GIT_EXTERNAL_DIFF: join(base, 'program'),
  };
  polylogue = await testProduct({ root, env: { ...env, POLYLOGUE_TOOLSETS: 'core,code,agent' }, childEnv });
  await writeFile(join(base, 'program'), `#!/bin/sh\ntouch ${join(base, 'ran')}\ncat "$1"\n`, { mode: 0o755 });
});
afterAll(async () => {
  await polylogue.close();
  await vendor.close();
  await rm(base, { recursive: true, force: true });
});

const git = (...path: string[]) => join(root, '.git', ...path);
const put = async (path: string, text: string) => {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
};
const link = async (target: string, path: string) => {
  await rm(path, { recursive: true, force: true });
  await mkdir(dirname(path), { recursive: true });
  await symlink(target, path);
};
const alternates = (text: string, store = git('objects')) => put(join(store, 'info', 'alternates'), text);

/** A repository at `top` that has the other one's branch and index, and of its objects none. */
async function hollow(top = root): Promise<void> {
  await rm(top, { recursive: true, force: true });
  await cp(loose, join(top, '.git'), { recursive: true });
  await rm(join(top, '.git', 'objects'), { recursive: true });
  await rm(join(top, '.git', 'logs'), { recursive: true });
  await mkdir(join(top, '.git', 'objects', 'info'), { recursive: true });
  await mkdir(join(top, '.git', 'objects', 'pack'));
  await put(join(top, 'a.txt'), 'mine\n');
}

/** All objects here, so that what is tried is not that they are missing. */
const whole = () => cp(join(loose, 'objects'), git('objects'), { recursive: true });
const fanOut = async (store: string) => (await readdir(store)).filter(name => name.length === 2);

beforeEach(() => hollow());

interface Seen {
  precommit: Document;
  /** What the tools of the agent answered. */
  agent: string;
  /** All that was sent to the model or replied. */
  all: string;
}

/** By the agent's tools and by precommit. */
async function look(tools = ['git_log', 'git_show', 'git_diff']): Promise<Seen> {
  const before = vendor.requests.length;
  const calls = tools.map(name => ({ name, args: name === 'git_show' ? { ref: 'HEAD' } : {} }));
  vendor.script({ calls });
  const reply = await polylogue.call('agent', { task: 'Look.', model: 'openai:gpt-5.2' });
  const agent =
    vendor.requests
      .at(-1)
      ?.messages.map(({ text }) => text)
      .join('\n') ?? '';
  const precommit = await polylogue.call('precommit', step(1, 1, { path: '.' }));
  const sent = vendor.requests.slice(before).flatMap(({ messages }) => messages.map(({ text }) => text));
  return { precommit, agent, all: [...sent, JSON.stringify([reply, precommit])].join('\n') };
}

type Attack = readonly [name: string, prepare: () => Promise<void>];

const attacks: readonly Attack[] = [
  ['alternates, absolute', () => alternates(`${loose}/objects\n`)],
  ['alternates, relative', () => alternates('../../../../theirs/.git/objects\n')],
  ['alternates in quotes', () => alternates(`"${loose}/objects"\n`)],
  ['alternates in quotes with escapes', () => alternates(`"${loose.replace('theirs', '\\164heirs')}/objects"\n`)],
  ['alternates after a comment and an empty line', () => alternates(`# mine\n\n${loose}/objects`)],
  [
    'alternates that go back behind a link',
    async () => {
      await link(join(loose, 'info'), join(root, 'way'));
      await alternates(`${root}/way/../objects\n`);
    },
  ],
  [
    'nested alternates',
    async () => {
      await alternates(`${loose}/objects\n`, join(root, 'store'));
      await alternates(`${root}/store\n`);
    },
  ],
  [
    'alternates four deep, relative at first',
    async () => {
      await alternates('../../one\n');
      await alternates(`${root}/two\n`, join(root, 'one'));
      await alternates(`${root}/three\n`, join(root, 'two'));
      await alternates(`${loose}/objects\n`, join(root, 'three'));
    },
  ],
  [
    'a list of alternates that is a link to one inside',
    async () => {
      await put(join(root, 'list'), `${loose}/objects\n`);
      await link(join(root, 'list'), git('objects/info/alternates'));
    },
  ],
  [
    'a list of alternates that is a link outside',
    async () => {
      await put(join(base, 'list'), `${loose}/objects\n`);
      await link(join(base, 'list'), git('objects/info/alternates'));
    },
  ],
  [
    'an alternate inside whose packs are a link',
    async () => {
      await link(`${packed}/objects/pack`, join(root, 'store/pack'));
      await alternates(`${root}/store\n`);
    },
  ],
  ['objects as a link', () => link(`${loose}/objects`, git('objects'))],
  ['packs as a link', () => link(`${packed}/objects/pack`, git('objects/pack'))],
  [
    'each pack as a link',
    async () => {
      for (const name of await readdir(join(packed, 'objects/pack'))) {
        await link(join(packed, 'objects/pack', name), git('objects/pack', name));
      }
    },
  ],
  [
    'only the data of a pack as a link, its index copied',
    async () => {
      await cp(join(packed, 'objects/pack'), git('objects/pack'), { recursive: true });
      for (const name of await readdir(git('objects/pack'))) {
        if (name.endsWith('.pack')) await link(join(packed, 'objects/pack', name), git('objects/pack', name));
      }
    },
  ],
  [
    'an index of several packs as a link',
    async () => {
      await whole();
      await link(join(packed, 'objects/pack/multi-pack-index'), git('objects/pack/multi-pack-index'));
    },
  ],
  [
    'a chain of commit graphs as a link',
    async () => {
      await whole();
      await link(join(packed, 'objects/info/commit-graphs'), git('objects/info/commit-graphs'));
    },
  ],
  [
    'folders of loose objects as links',
    async () => {
      for (const name of await fanOut(`${loose}/objects`))
        await link(join(loose, 'objects', name), git('objects', name));
    },
  ],
  [
    'each loose object as a link',
    async () => {
      for (const name of await fanOut(`${loose}/objects`)) {
        for (const file of await readdir(join(loose, 'objects', name))) {
          await link(join(loose, 'objects', name, file), git('objects', name, file));
        }
      }
    },
  ],
  [
    'folders of loose objects as links to folders inside that hold links',
    async () => {
      for (const name of await fanOut(`${loose}/objects`)) {
        for (const file of await readdir(join(loose, 'objects', name))) {
          await link(join(loose, 'objects', name, file), join(root, 'mine', name, file));
        }
        await link(join('../../mine', name), git('objects', name));
      }
    },
  ],
  ['.git as a link', () => link(loose, git())],
  [
    '.git as a file with an absolute path',
    async () => {
      await rm(git(), { recursive: true });
      await put(git(), `gitdir: ${loose}\n`);
    },
  ],
  [
    '.git as a file with a relative path',
    async () => {
      await rm(git(), { recursive: true });
      await put(git(), 'gitdir: ../../theirs/.git\n');
    },
  ],
  ['a common folder outside', () => put(git('commondir'), `${loose}\n`)],
  [
    'a common folder whose name begins with a space',
    async () => {
      await put(git('commondir'), ' common\n');
      await cp(git(), join(root, 'plain'), { recursive: true });
      await rename(join(root, 'plain'), git('common'));
      await link(loose, git(' common'));
    },
  ],
  [
    'HEAD as a link',
    async () => {
      await whole();
      await link(join(loose, 'HEAD'), git('HEAD'));
    },
  ],
  [
    'a branch as a link',
    async () => {
      await whole();
      await link(join(loose, 'refs/heads/main'), git('refs/heads/main'));
    },
  ],
  [
    'a folder of branches as a link',
    async () => {
      await whole();
      await link(join(loose, 'refs/heads'), git('refs/heads/team/theirs'));
    },
  ],
  [
    'packed refs as a link',
    async () => {
      await whole();
      await link(join(packed, 'packed-refs'), git('packed-refs'));
    },
  ],
  [
    'packed refs as a link to a file with secrets, which git would tell as a line that it does not understand',
    async () => {
      await whole();
      await put(join(root, '.env'), `KEY=${canary}\n`);
      await link(join(root, '.env'), git('packed-refs'));
    },
  ],
  [
    'the index as a link',
    async () => {
      await whole();
      await link(join(loose, 'index'), git('index'));
    },
  ],
  [
    'the log of HEAD as a link',
    async () => {
      await whole();
      await link(join(loose, 'logs/HEAD'), git('logs/HEAD'));
    },
  ],
  [
    'grafts as a link',
    async () => {
      await whole();
      await link(join(base, 'theirs/a.txt'), git('info/grafts'));
    },
  ],
  [
    'the mark of a shallow clone as a link',
    async () => {
      await whole();
      await link(join(base, 'theirs/a.txt'), git('shallow'));
    },
  ],
  [
    'settings that include others',
    async () => {
      await whole();
      await put(git('config'), `[core]\n\tbare = false\n[include]\n\tpath = ${base}/theirs/a.txt\n`);
    },
  ],
  [
    'settings that include others under a condition, by a file inside',
    async () => {
      await whole();
      await put(git('config'), `[core] bare = false\n[INCLUDEIF "gitdir:/**"]path=../more\n`);
      await put(join(root, 'more'), '[include]\npath = ../../theirs/a.txt\n');
    },
  ],
  [
    'settings that name a list of ignored files in the home folder',
    async () => {
      await whole();
      await put(git('config'), '[core]\n\tbare = false\n\texcludesFile = ~/theirs/a.txt\n');
    },
  ],
];

describe('a repository by which git would read outside the roots', () => {
  it.each(attacks)('is refused: %s', async (_name, prepare) => {
    await prepare();
    const { precommit, agent, all } = await look();
    expect(precommit).toMatchObject({ isError: true, error: { class: 'security' } });
    expect(agent.match(/outside of what may be read/g)?.length).toBe(3);
    expect(all).not.toContain(canary);
  });

  it('gives the search index nothing either, by any of these ways', async () => {
    const project = root;
    try {
      for (const [at, [, prepare]] of attacks.entries()) {
        root = join(project, `way-${at}`);
        await hollow();
        await prepare();
        // Their settings name no other project's files, which the index would find as files.
        await put(join(root, 'a.txt'), `mine ${at}\n`);
      }
      const { searchIndex } = polylogue.product;
      const index = await searchIndex(project);
      const { signal } = new AbortController();
      await index.refresh({ signal });
      const texts = (await index.search('mine', 100, signal)).map(({ text }) => text);
      expect(texts.filter(text => text.includes('mine')).length).toBeGreaterThan(20);
      expect((await index.search(canary, 100, signal)).filter(({ text }) => text.includes(canary))).toEqual([]);
    } finally {
      root = project;
    }
  });

  it('is refused where there are too many links to look at', async () => {
    for (let n = 0; n < 1_001; n++) await symlink('x', git('objects/info', `a${n}`));
    await link(`${loose}/objects`, git('objects/info/b'));
    const { precommit, agent } = await look();
    expect(precommit).toMatchObject({ isError: true });
    expect(agent.match(/more directories or links than can be checked/g)?.length).toBe(3);
  });

  it('is refused for the commit of a submodule whose data is outside, where no repositories are looked for', async () => {
    const { git: run } = await gitRepository(root);
    await whole();
    await run('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},node_modules/sub`);
    await put(join(root, 'node_modules/sub/.git'), `gitdir: ${loose}\n`);
    const { precommit, all } = await look(['git_diff']);
    expect(precommit).toMatchObject({ isError: true, error: { class: 'security' } });
    expect(all).not.toContain('+Subproject commit');
  });

  it('says what to add for a linked work tree whose repository is outside', async () => {
    const { git: run } = await gitRepository(join(base, 'theirs'));
    await rm(root, { recursive: true });
    await run('worktree', 'add', '--quiet', '--detach', root);
    await put(join(root, 'a.txt'), 'mine\n');
    const { precommit, all } = await look();
    await run('worktree', 'remove', '--force', root);
    expect(precommit.error.message).toContain(join(loose, 'worktrees/project'));
    expect(precommit.error.next).toContain(`can add ${join(base, 'theirs')} with POLYLOGUE_ROOTS`);
    expect(all).not.toContain(canary);
  });
});

const diffed = '-CANARY-of-another-project second\n+mine\n';

/** Objects of its own, so that the canary is what it may show. */
const harmless: readonly Attack[] = [
  ['a plain one', async () => {}],
  [
    'a packed one, with packed refs and a graph of commits',
    async () => {
      await rm(git(), { recursive: true });
      await cp(packed, git(), { recursive: true });
    },
  ],
  [
    'one that borrows objects inside, and those others',
    async () => {
      await rename(git('objects'), join(root, 'last'));
      await mkdir(git('objects'));
      await alternates('# of ours\n../../first\n');
      await alternates(`"${root}/last"\n`, join(root, 'first'));
      await mkdir(join(root, 'last/info'), { recursive: true });
    },
  ],
  [
    'one whose packs are a link to a folder inside',
    async () => {
      await rm(git('objects'), { recursive: true });
      await cp(join(packed, 'objects'), git('objects'), { recursive: true });
      await rename(git('objects/pack'), join(root, 'packs'));
      await symlink('../../packs', git('objects/pack'));
    },
  ],
  ['one whose HEAD is a link to a branch', () => link('refs/heads/main', git('HEAD'))],
  [
    'one whose .git is a link to a folder inside',
    async () => {
      await rename(git(), join(root, 'data'));
      await symlink('data', git());
    },
  ],
  [
    'one whose .git is a file that names a folder inside',
    async () => {
      await rename(git(), join(root, 'data'));
      await put(git(), 'gitdir: data\n');
    },
  ],
  [
    'a linked work tree whose repository is inside',
    async () => {
      await rename(git(), join(root, 'main'));
      await cp(join(root, 'main/index'), join(root, 'main/worktrees/w/index'));
      await put(join(root, 'main/worktrees/w/HEAD'), 'ref: refs/heads/main\n');
      await put(join(root, 'main/worktrees/w/commondir'), '../..\n');
      await put(join(root, 'main/worktrees/w/gitdir'), `${git()}\n`);
      await put(git(), `gitdir: ${root}/main/worktrees/w\n`);
    },
  ],
  [
    'one that includes settings inside',
    async () => {
      await put(git('config'), '[core]\nbare = false\nattributesFile = attributes\n[include]\npath = more\n');
      await put(git('more'), '[user]\nname = Ada\n');
    },
  ],
  [
    'one with links outside where git reads nothing',
    async () => {
      await link(join(loose, 'info'), git('hooks'));
      await link(loose, git('modules/theirs'));
      await link(loose, git('lfs'));
    },
  ],
  [
    'one with a submodule inside',
    async () => {
      await cp(packed, git('modules/sub'), { recursive: true });
      await put(join(root, 'sub/.git'), 'gitdir: ../.git/modules/sub\n');
      await put(join(root, 'sub/a.txt'), `${canary} second\n`);
    },
  ],
];

/** Settings and files that would start a program or lead elsewhere, and do not, all at once. */
const ignored: Attack = [
  'one with programs, another work tree, other objects over HTTP and a replaced commit',
  async () => {
    const program = join(base, 'program');
    await put(git('objects/info/http-alternates'), `${loose}/objects\n`);
    const core = `[core]\nbare = false\nworktree = ${base}/theirs\nfsmonitor = ${program}\nhooksPath = ${root}/run\n`;
    const diff = `[diff]\nexternal = ${program}\n[diff "x"]\ncommand = ${program}\ntextconv = ${program}\n`;
    const filter = `[filter "x"]\nclean = ${program}\nsmudge = ${program}\nprocess = ${program}\nrequired\n`;
    await put(git('config'), `${core}${diff}${filter}[log]\nshowSignature\n[gpg]\nprogram = ${program}\n`);
    await put(join(root, '.gitattributes'), '* filter=x diff=x\n');
    await cp(program, join(root, 'run/post-index-change'));
    await cp(program, git('hooks/post-index-change'));
    await cp(git('refs/heads/main'), git('refs/replace', '1'.repeat(40)));
  },
];

describe('a repository that is all inside', () => {
  it.each([...harmless, ignored])('is read: %s', async (_name, prepare) => {
    await whole();
    await prepare();
    // Each start of git counts: the tools of the agent start it like this one does.
    const { precommit, agent, all } = await look(['git_show']);
    expect(precommit).toMatchObject({ isError: false });
    expect(all.split(diffed)).toHaveLength(2);
    expect(agent).toContain(`second ${canary}`);
    expect(await stat(join(base, 'ran')).catch(() => 'no')).toBe('no');
  });
});

describe('the check', () => {
  it('is made once a call, and cheap with 10,000 loose objects', async () => {
    await whole();
    for (let folder = 0; folder < 256; folder++) {
      const path = git('objects', folder.toString(16).padStart(2, '0'));
      await mkdir(path, { recursive: true });
      await Promise.all(Array.from({ length: 40 }, (_, n) => writeFile(join(path, `${n}`.padStart(38, '0')), '')));
    }
    const times: number[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const before = performance.now();
      expect(await polylogue.call('precommit', step(1, 2, { path: '.' }))).toMatchObject({ isError: false });
      times.push(performance.now() - before);
    }
    console.info(`precommit with 10,240 loose objects: ${times.map(Math.round).join(', ')} ms`);
    // A generous multiple of what it takes, 60 to 250 ms: a look at each object would take many times more.
    expect(Math.min(...times)).toBeLessThan(3_000);
  });
});
