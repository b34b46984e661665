import { describe, expect, it } from 'vitest';
import { readFrames } from '../../../../src/engine/modes/diagnose/stack-frames.ts';
import { ownTime } from '../../../support/own-time.ts';

describe('the places in an error message', () => {
  it.each([
    ['Node', '    at f (file:///srv/my%20app/a.js:6:36)', [{ path: '/srv/my app/a.js', line: 6 }]],
    ['Node, CommonJS', '    at Object.<anonymous> (/srv/a.cjs:1:2)', [{ path: '/srv/a.cjs', line: 1 }]],
    ['Python', '  File "/srv/my app/a.py", line 10, in f', [{ path: '/srv/my app/a.py', line: 10 }]],
    ['Go', '\t/srv/a.go:12 +0x25', [{ path: '/srv/a.go', line: 12 }]],
    ['Rust', "thread 'main' panicked at src/main.rs:4:10:", [{ path: 'src/main.rs', line: 4 }]],
    [
      'Java',
      '\tat shop.billing.Invoice$Row.gross(Invoice.java:22)',
      [{ path: 'Invoice.java', line: 22, folder: 'shop/billing' }],
    ],
    ['Java with modules', '\tat app//a.B.<init>(B.java:3)', [{ path: 'B.java', line: 3, folder: 'a' }]],
    ['Node on Windows', 'at f (file:///C:/src/a%20b.ts:7:1)', [{ path: 'C:/src/a b.ts', line: 7 }]],
    ['.NET', String.raw`   at A.B() in C:\src\a.cs:line 7`, [{ path: String.raw`C:\src\a.cs`, line: 7 }]],
    ['TypeScript', "src/a.ts(3,5): error TS2322: Type 'x'", [{ path: 'src/a.ts', line: 3 }]],
    ['javac', 'src/a/B.java:3: error: cannot find symbol', [{ path: 'src/a/B.java', line: 3 }]],
    ['a C compiler', 'src/a.c:9:1: error: expected', [{ path: 'src/a.c', line: 9 }]],
  ])('%s', (_language, text, frames) => {
    expect(readFrames(text)).toEqual(frames);
  });

  it('come in order, each once', () => {
    const text = 'a.ts:3:1\nb.ts:2:1\na.ts:3:9\na.ts:4:1';
    expect(readFrames(text).map(({ path, line }) => `${path}:${line}`)).toEqual(['a.ts:3', 'b.ts:2', 'a.ts:4']);
  });

  it.each([
    ['times and addresses', '12:30:05 listening on localhost:8080, see https://example.org:443/x'],
    ['a line 0', 'a.ts:0'],
    ['nothing', ''],
  ])('are not %s', (_what, text) => {
    expect(readFrames(text)).toEqual([]);
  });

  it('are read in a moment, also from a megabyte made to take long', () => {
    const nasty = [
      '/a.'.repeat(300_000),
      'in '.repeat(300_000),
      `at ${'a.'.repeat(300_000)}`,
      'File "'.repeat(150_000),
    ];
    for (const text of nasty) {
      const began = ownTime();
      readFrames(text);
      expect(ownTime() - began).toBeLessThan(2_000);
    }
  });
});
