import { expect, it } from 'vitest';
import { shownToApprove } from '../../src/calls/format-reply.ts';

it('what is too long to be shown whole names every file of a patch, and no line that was cut from one', () => {
  const part = (name: string) =>
    `diff --git a/${name} b/${name}\n--- a/${name}\n+++ b/${name}\n@@ -1,2 +1,1 @@\n--- a comment of SQL\n same\n`;
  const middle = part(`${'deep/'.repeat(80)}x.sql`);
  const shown = shownToApprove(part('a.sql') + 'x'.repeat(9_000) + middle + 'y'.repeat(9_000) + part('z.sql'));
  const named = shown.slice(0, shown.indexOf('diff --git a/a.sql b/a.sql\n--- a/a.sql\n+++ b/a.sql\n@@'));
  for (const name of ['--- a/a.sql', '+++ b/a.sql', '--- a/deep/', '+++ b/deep/', '+++ b/z.sql'])
    expect(named).toContain(name);
  expect(named).not.toContain('a comment of SQL');
});
