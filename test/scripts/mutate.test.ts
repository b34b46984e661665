import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { instrument } from '../../scripts/mutate/mutants.ts';
import { killedShare, survivors, type TriedMutant } from '../../scripts/mutate/report.ts';
import { type Outcome, runMutants } from '../../scripts/mutate/session.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const changesOf = (source: string) => instrument('a.ts', source, 1).mutants.map(({ change }) => change);

/** Loads a function `f` from source and calls it with a mutant switched on; 0 is none. */
function call(source: string, active: number, ...args: unknown[]): unknown {
  const { code } = instrument('a.ts', source, 1);
  const make = new Function('__mutant__', `${stripTypeScriptTypes(code)}\nreturn f;`);
  return make((id: number) => id === active)(...args);
}

describe('the mutants of a source', () => {
  it.each([
    [
      'a condition and its parts',
      'function f(a: number, b: string) { if (a < 2 && b) g(); }',
      ['a < 2 && b → !(a < 2 && b)', 'a < 2 && b → (a < 2) || (b)', 'a < 2 → a <= 2', 'g(); → removed'],
    ],
    [
      'a comparison once',
      "function f(a: string) { if (a === 'ask') return; }",
      ["a === 'ask' → a !== 'ask'", "'ask' → ''", 'return; → removed'],
    ],
    [
      'a returned value',
      'const f = (a: number[]) => a.some(Boolean);',
      ['a.some(Boolean) → undefined', 'a.some(Boolean) → a.every(Boolean)'],
    ],
    [
      'an optional chain as a whole',
      'const f = (a?: { b: number[] }) => void a?.b.slice(1);',
      ['void a?.b.slice(1) → undefined', 'a?.b.slice(1) → a?.b', 'a?.b → a.b'],
    ],
    [
      'no message, name of a type or imported file',
      "import x from 'y'; throw new Error(typeof x === 'string' ? 'It is not there.' : x);",
      [
        "throw new Error(typeof x === 'string' ? 'It is not there.' : x); → removed",
        "typeof x === 'string' → typeof x !== 'string'",
      ],
    ],
    ['no joined text', "const f = (a: string) => a + '!';", ["a + '!' → undefined"]],
  ])('are %s', (_, source, changes) => {
    expect(changesOf(source)).toEqual(changes);
  });

  it('leave the code as it is until one is on', () => {
    const source = `function f(n: number) {
      let found = 'none';
      if (n > 0) if (n > 10) found = 'large'; else found = 'small';
      return { found, half: (n + 1) / 2 };
    }`;
    expect([call(source, 0, 20), call(source, 0, 3), call(source, 0, -1)]).toEqual([
      { found: 'large', half: 10.5 },
      { found: 'small', half: 2 },
      { found: 'none', half: 0 },
    ]);
    const { mutants } = instrument('a.ts', source, 1);
    const numberOf = (change: string) => mutants.findIndex(mutant => mutant.change === change) + 1;
    expect(call(source, numberOf("found = 'large'; → removed"), 20)).toEqual({ found: 'none', half: 10.5 });
    expect(call(source, numberOf('n + 1 → n - 1'), 3)).toEqual({ found: 'small', half: 1 });
    expect(mutants.filter(({ line }) => line === 3).map(({ text }) => text)).toContain(
      "if (n > 0) if (n > 10) found = 'large'; else found = 'small';",
    );
  });
});

describe('a run', () => {
  it('says of each mutant whether the tests notice it', async () => {
    const path = `${root}src/core/text.ts`;
    const code = `${readFileSync(path, 'utf8')}
      if (__mutant__(1)) throw new Error('broken');
      while (__mutant__(2));
      __mutant__(3);
      export const never = () => __mutant__(4);`;
    const outcomes = new Map<number, Outcome>();
    await runMutants({
      root,
      code: new Map([[path, code]]),
      tests: ['test/core/near-name.test.ts'],
      mutants: [1, 2, 3, 4],
      size: 5,
      onOutcome: (mutant, outcome) => outcomes.set(mutant, outcome),
    });
    expect([...outcomes]).toEqual([
      [1, 'killed'],
      [2, 'timeout'],
      [3, 'survived'],
      [4, 'unreached'],
    ]);
  });

  it('fails when the tests fail without a mutant', async () => {
    const path = `${root}src/core/text.ts`;
    const code = new Map([[path, "throw new Error('broken');"]]);
    const run = runMutants({
      root,
      code,
      tests: ['test/core/near-name.test.ts'],
      mutants: [1],
      size: 2,
      onOutcome: () => undefined,
    });
    await expect(run).rejects.toThrow('near-name.test.ts: loading');
  });
});

describe('the report', () => {
  const mutant = (line: number, outcome: Outcome): TriedMutant => ({
    ...{ file: 'src/a.ts', line, start: 0, end: 1, edited: '(a)' },
    text: 'return a < b;',
    change: 'a < b → a <= b',
    outcome,
  });

  it('knows an accepted survivor by its text, wherever its line went', () => {
    const accepted = [
      { file: 'src/a.ts', text: 'return a < b;', change: 'a < b → a <= b', reason: 'Equal values are the same.' },
    ];
    const other = { ...mutant(9, 'unreached'), change: 'a < b → undefined' };
    const of = (tried: TriedMutant[], untried: TriedMutant[] = []) => survivors({ tried, untried }, accepted);
    expect(of([mutant(7, 'survived'), other, mutant(8, 'killed')])).toEqual({
      open: ['src/a.ts:9  a < b → undefined  (reached by no test)'],
      stale: [],
    });
    expect(of([mutant(8, 'killed')]).stale).toEqual(['src/a.ts  a < b → a <= b']);
    expect(of([mutant(8, 'killed')], [mutant(9, 'killed')]).stale).toEqual([]);
  });

  it('counts a mutant that hangs as noticed, and one that no test reaches as not', () => {
    expect(
      killedShare([mutant(1, 'killed'), mutant(2, 'timeout'), mutant(3, 'survived'), mutant(4, 'unreached')]),
    ).toBe(0.5);
  });
});
