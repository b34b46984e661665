import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempTree } from '../workspace/temp-tree.ts';

const script = join(import.meta.dirname, '../../scripts/words.ts');

it('names each forbidden construction in texts and pages, and none in code, comments and quotations', () => {
  const root = tempTree({
    'src/a.ts':
      '// anew\nconst anew = 1;\nthrow inputError(`There is no tool "${name}".`, { next: \'Send it again.\' });\n',
    'docs/reference/library.md': '| `a` | What goes along. |\n',
    'docs/page.md': '# Page\n\nIt is made anew.\n\n```sh\nmake anew\n```\n\n`anew`\n',
  });
  const { status, stderr } = spawnSync(process.execPath, [script], { cwd: root, encoding: 'utf8' });
  expect(status).toBe(1);
  expect(stderr.trim().split('\n')).toEqual([
    'docs/page.md:3  "anew": write again, or a verb with re-',
    'docs/reference/library.md:1  "goes along": write is included, is sent',
    'src/a.ts:3  "There is no tool "": write unknown …',
    'src/a.ts:3  "Send it again": write resend the call, retry in … s',
    '4 forbidden constructions',
  ]);
});

it('finds none in the repository', () => {
  const out = execFileSync(process.execPath, [script], { cwd: join(import.meta.dirname, '../..'), encoding: 'utf8' });
  expect(out).toMatch(/^words: none of \d+ forbidden constructions in \d{3} files/);
});
