import { describe, expect, it } from 'vitest';
import { createFileShortener } from '../../src/calls/ask/shorten-files.ts';
import { objectIn } from '../../src/calls/reply.ts';
import { hashOf } from '../../src/core/ids.ts';
import { parsePatch } from '../../src/workspace/git/patch.ts';
import { createPool } from '../../src/workspace/workers/worker-pool.ts';
import { realClock } from '../support/clock.ts';
import { ownTime } from '../support/own-time.ts';

const patch = '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b';

describe('answers that are made to be slow to read', () => {
  it.each([
    ['a fence of empty lines', `\`\`\`\t${'\n'.repeat(300_000)}x`],
    ['fences without an end', '```json\nf'.repeat(30_000)],
    ['quotes that never match', `{${'"a:'.repeat(100_000)}}`],
  ])('are read in time by their length: %s', (_, text) => {
    const before = ownTime();
    expect(objectIn(text)).toBeUndefined();
    expect(() => parsePatch(text)).toThrow('no unified diff');
    expect(ownTime() - before).toBeLessThan(1_000);
  });

  it.each([
    ['```json\n\n{"a": 1}\n```', { a: 1 }],
    ['So:\n```\n{"a": 1}```\nand\n```\n{"b": 1}\n```', { a: 1 }],
    ['```json\n{a: 1,}\n```', { a: 1 }],
  ])('are still read: %j', (text, object) => {
    expect(objectIn(text)).toEqual(object);
  });

  it('hold the patch of their first fence', () => {
    expect(parsePatch(`Here:\n\`\`\`diff\n${patch}\n\`\`\`\nand\n\`\`\`\nx\n\`\`\``)).toMatchObject([{ newPath: 'x' }]);
  });
});

it('outlines a file whose lines are made of blanks in time by its length', async () => {
  const text = `${'const a = 1;\n'.repeat(9)}function f() {${' '.repeat(60_000)}return 1; }\n`;
  const pool = createPool({ size: 1, clock: realClock() });
  const before = ownTime();
  const short = await createFileShortener(pool).condense(
    { path: 'a.ts', text, hash: hashOf(text) },
    500,
    new AbortController().signal,
  );
  expect(short).toEqual({ form: 'outline', text: expect.stringContaining('function f() {') });
  expect(ownTime() - before).toBeLessThan(1_000);
});
