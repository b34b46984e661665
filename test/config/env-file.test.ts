import { describe, expect, it } from 'vitest';
import { parseEnvFile } from '../../src/config/settings-files.ts';
import { ownTime } from '../support/own-time.ts';

describe('a .env file', () => {
  it('has names, quotes, comments, exports, a byte-order mark and Windows line ends', () => {
    const text = '\uFEFFA=1\r\n# note\r\nexport B="x # y"\r\nC=\'q\' # note\r\nD = spaced \r\nnothing\r\nE=';
    expect({ ...parseEnvFile(text).values }).toEqual({ A: '1', B: 'x # y', C: 'q', D: 'spaced', E: '' });
  });

  it.each(['\r', '\u2028', ' ', 'A="x'])('is read in time by its length: %j again and again', piece => {
    const before = ownTime();
    parseEnvFile(piece.repeat(100_000));
    expect(ownTime() - before).toBeLessThan(1_000);
  });

  it('tells which values end at a # that has no space before it', () => {
    const { values, cut } = parseEnvFile('KEY=ab#cd\nFINE="ab#cd"\nALSO=ab # cd\nexport X = 1#2');
    expect(values.KEY).toBe('ab');
    expect(cut).toEqual(['KEY', 'X']);
  });

  it.each([
    ['another sign', 'A=1\n\nCUSTOM_API_URL: http://here\n# note', [3]],
    ['no name, no sign, a word alone', '=x\r\nfoo\r\nexport\r\n  export B = "x" # y\r\n', [1, 2, 3]],
    ['within quotes', 'A="x\ny z\n#"\nB=`p\nq` r\n  \n stray\nC=\'\nno end', [7, 9]],
    ['an unfinished quote in a comment', "# it's\nA=1\nit's", [3]],
  ])('tells which lines set nothing: %s', (_what, text, lines) => {
    expect(parseEnvFile(text).idle).toEqual(lines);
  });

  it('cannot reach the prototype of its values', () => {
    const { values } = parseEnvFile('__proto__=x\nconstructor=y');
    expect(Object.getPrototypeOf(values)).toBeNull();
    expect(values.constructor).toBe('y');
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });
});
