import { describe, expect, it } from 'vitest';
import { createMarkdown } from '../../src/cli/command/markdown.ts';
import { ownTime } from '../support/own-time.ts';

const shown = (text: string): string => {
  const markdown = createMarkdown(80, true);
  return markdown.add(text) + markdown.end();
};

describe('Markdown that is made to break its renderer', () => {
  it.each(['> ', '1. ', 'a*'])('is shown all the same: a line of %j', piece => {
    const before = ownTime();
    expect(shown(`${piece.repeat(200_000)}the end\n\n**after**\n`)).toMatch(/the end[\s\S]*after/);
    expect(ownTime() - before).toBeLessThan(2_000);
  });

  it('is shown all the same: a long line that arrives in small pieces', () => {
    const markdown = createMarkdown(80, true);
    const before = ownTime();
    const shown = Array.from({ length: 50_000 }, () => markdown.add('some words ')).join('');
    expect(shown + markdown.add('and **more**\r') + markdown.add('\nnext') + markdown.end()).toMatch(
      /more\*\*\nnext\n$/,
    );
    expect(ownTime() - before).toBeLessThan(2_000);
  });

  it('is rendered as long as it is short', () => {
    expect(shown('**after**\n')).not.toContain('**');
    expect(shown(`${'> '.repeat(10_000)}the end\n`)).toContain('the end');
  });
});
