import { applyPatch } from 'diff';
import { describe, expect, it } from 'vitest';
import { unifiedDiff } from '../../src/workspace/diff.ts';
import { ownTime } from '../support/own-time.ts';
import { seeded } from './temp-tree.ts';

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `line ${at}\n`).join('');

describe('unifiedDiff', () => {
  it('shows a change with three lines of context', () => {
    const diff = unifiedDiff('/a/b.ts', numbered(20), numbered(20).replace('line 10\n', 'changed\n'));
    expect(diff?.split('\n')).toEqual([
      '--- /a/b.ts',
      '+++ /a/b.ts',
      '@@ -8,7 +8,7 @@',
      ' line 7',
      ' line 8',
      ' line 9',
      '-line 10',
      '+changed',
      ' line 11',
      ' line 12',
      ' line 13',
      '',
    ]);
  });

  it('is empty when nothing changed', () => {
    expect(unifiedDiff('/a', 'x\n', 'x\n')).toBe('');
  });

  it('leads from the one text to the other', () => {
    const random = seeded(7);
    const before = numbered(300);
    const after = before
      .split('\n')
      .flatMap(line => (random() < 0.1 ? [] : random() < 0.1 ? [line, 'new'] : [line]))
      .join('\n');
    expect(applyPatch(before, unifiedDiff('/a', before, after) ?? '')).toBe(after);
  });

  it('gives up on texts that have nothing in common instead of computing for minutes', () => {
    const random = seeded(1);
    const noise = () => Array.from({ length: 60_000 }, () => `${random()}\n`).join('');
    const started = ownTime();
    expect(unifiedDiff('/a', noise(), noise())).toBeUndefined();
    expect(ownTime() - started).toBeLessThan(5_000);
  });

  it('keeps a name with a line break on one line', () => {
    expect(unifiedDiff('/a\n+++ /b', 'x', 'y')?.split('\n')[1]).toMatch(/^\+\+\+ /);
  });
});
