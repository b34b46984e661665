import { describe, expect, it } from 'vitest';
import { fileName, numberedName } from '../../src/workspace/write-file.ts';
import { ownTime } from '../support/own-time.ts';

describe('fileName', () => {
  it.each([
    [['q', 'openai', 'gpt-5'], 'q_openai_gpt-5.md'],
    [['q', 'openrouter', 'meta/llama-3:free'], 'q_openrouter_meta-llama-3-free.md'],
    [['a<b>|c?*"', 'x', 'y'], 'a-b-c_x_y.md'],
    [['../../etc/passwd', 'x', 'y'], 'etc-passwd_x_y.md'],
    [['.hidden', 'x', 'y'], 'hidden_x_y.md'],
    [['…', 'x', 'y'], 'prompt_x_y.md'],
    [['con.v1', 'x', 'y'], '_con.v1_x_y.md'],
    [['Größe', 'x', '模型'], 'Größe_x_模型.md'],
    [['line\nbreak\u202e', 'x', 'y. '], 'line-break_x_y.md'],
  ] as const)('makes of %j what every platform takes', (parts, name) => {
    expect(fileName([...parts], 'md')).toBe(name);
  });

  it('stays far below what file systems take, and never cuts a character in two', () => {
    const name = fileName(['💡é'.repeat(200), 'p'.repeat(300), '模'.repeat(300)], 'md');
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(180);
    expect(name.isWellFormed()).toBe(true);
    expect(name).toMatch(/\.md$/);
    const long = fileName(['問'.repeat(200), 'openai', 'gpt-5'], 'md');
    expect(long).toMatch(/^問{40,}_openai_gpt-5\.md$/);
    const began = ownTime();
    for (const text of ['a'.repeat(50_000), `a${'-'.repeat(50_000)}a`]) fileName([text], 'md');
    expect(ownTime() - began).toBeLessThan(500);
  });
});

describe('numberedName', () => {
  it('puts the number before the ending', () => {
    expect(numberedName('a.b.md', 1)).toBe('a.b.md');
    expect(numberedName('a.b.md', 2)).toBe('a.b-2.md');
    expect(numberedName('plain', 3)).toBe('plain-3');
  });
});
