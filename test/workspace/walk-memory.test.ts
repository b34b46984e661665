import { renameSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/workspace/sandbox.ts';
import { walkDirectory } from '../../src/workspace/walk.ts';
import { tempTree } from './temp-tree.ts';

const limits = { maxDepth: 100, maxEntries: 200_000 };
const sandboxOf = (root: string) => createSandbox({ roots: [root], allowSecrets: false });

describe('a walk', () => {
  it('that remembers rules applies those that work trees share to each of them', async () => {
    const root = tempTree({
      '.git/info/exclude': '/private.txt\n',
      '.git/worktrees/wt/commondir': '../..\n',
      'private.txt': '',
      'a.ts': '',
      'wt/.git': 'gitdir: ../.git/worktrees/wt\n',
      'wt/private.txt': '',
      'wt/b.ts': '',
    });
    const memory = { folders: new Map(), rules: new Map(), now: Date.now() };
    for (let round = 0; round < 2; round++) {
      const { files } = await walkDirectory(sandboxOf(root), root, { ...limits, memory });
      expect(files.map(path => relative(root, path))).toEqual(['a.ts', 'wt/.git', 'wt/b.ts']);
    }
  });

  it('does not follow a link that took the place of a folder meanwhile', async () => {
    const root = tempTree({ 'app/src/a.ts': '', 'other/b.ts': '' });
    const sandbox = sandboxOf(root);
    const list: Sandbox['list'] = async (path, limit) => {
      if (path === join(root, 'app/src')) {
        renameSync(path, join(root, 'was'));
        symlinkSync(join(root, 'other'), path);
      }
      return sandbox.list(path, limit);
    };
    const { files, skipped } = await walkDirectory({ ...sandbox, list }, join(root, 'app'), limits);
    expect(files).toEqual([]);
    expect(skipped).toMatchObject([{ path: join(root, 'app/src'), code: 'not_regular' }]);
  });

  it('takes a folder of a hundred thousand links and more', async () => {
    const root = tempTree();
    const entries = Array.from({ length: 190_000 }, (_, at) => ({ name: `l${at}`, kind: 'link' as const }));
    const list: Sandbox['list'] = async path => ({ path, entries, complete: true });
    const { skipped } = await walkDirectory({ ...sandboxOf(root), list }, root, limits);
    expect(skipped).toHaveLength(entries.length);
  });
});
