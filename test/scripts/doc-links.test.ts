import { describe, expect, it } from 'vitest';
import { findBrokenLinks } from '../../scripts/doc-links/find-broken-links.ts';

const there = new Set([
  'docs',
  'docs/guide.md',
  'src/app/app.ts',
  'src',
  'README.md',
  'docs/a b.png',
  'docs/note_(old).md',
]);

function check(readme: string, guide = '# Guide\n'): string[] {
  const texts = new Map([
    ['README.md', readme],
    ['docs/guide.md', guide],
  ]);
  return findBrokenLinks(texts, path => there.has(path)).map(({ path, line }) => `${path}:${line}`);
}

describe('links', () => {
  it.each([
    '[guide](docs/guide.md)',
    '[guide](./docs/guide.md "the guide")',
    '[guide](<docs/guide.md>)',
    '[folder](docs/)',
    '[root](/docs/guide.md)',
    '[image](docs/a%20b.png)',
    '[brackets](docs/note_(old).md)',
    '[![badge](https://example.org/badge.svg)](docs/guide.md)',
    '[mail](mailto:someone@example.org) and [site](https://example.org/x#y)',
    '[lines](src/app/app.ts#L3)',
    '[guide][1]\n\n[1]: docs/guide.md',
    '<img src="docs/a%20b.png">',
    'no link: `[x](nowhere.md)` and ``[y](`nowhere.md)``',
    '```md\n[x](nowhere.md)\n```',
    '- item\n  ~~~\n  [x](nowhere.md)\n  ```\n  [y](nowhere.md)\n  ~~~',
    '<!-- [x](nowhere.md) -->',
  ])('accepts %j', text => {
    expect(check(text)).toEqual([]);
  });

  it.each([
    '[guide](docs/guide2.md)',
    '![image](docs/b.png)',
    '[guide](../docs/guide.md)',
    '[bad](docs/%zz.md)',
    '[guide](docs/guide.md#nowhere)',
    '[here](#nowhere)',
    '[1]: docs/other.md',
    '<a href="nowhere.md">x</a>',
    '```\ncode\n```\n[x](nowhere.md)',
  ])('refuses %j', text => {
    expect(check(text)).toEqual([`README.md:${text.split('\n').length}`]);
  });

  it('resolves a link from the folder of its document', () => {
    expect(check('', '[up](../README.md) [wrong](README.md)\n')).toEqual(['docs/guide.md:1']);
  });
});

describe('anchors', () => {
  it.each([
    ['# Two Words', 'two-words'],
    ['## The `code`, and [a link](x.md)!', 'the-code-and-a-link'],
    ['## 1. One – two', '1-one--two'],
    ['### Größe #', 'größe'],
    ['Title\n=====', 'title'],
    ['# Same\n# Same', 'same-1'],
    ['<a id="own"></a>', 'own'],
    ['# snake_case', 'snake_case'],
  ])('finds %j', (heading, anchor) => {
    const guide = heading.replace('(x.md)', '(guide.md)');
    expect(check(`[x](docs/guide.md#${anchor})`, guide)).toEqual([]);
    expect(check(`[x](docs/guide.md#${anchor}-other)`, guide)).toEqual(['README.md:1']);
  });

  it('takes no comment in a code block for a heading', () => {
    expect(check('[x](docs/guide.md#install)', '```sh\n# install\n```\n')).toEqual(['README.md:1']);
  });
});

describe('paths in backticks', () => {
  it('exist, with or without a line', () => {
    expect(
      check(
        'see `src/app/app.ts`, `src/app/app.ts:10-20`, `src/`, `src/tools/<name>.ts`, `src/*/index.ts`, `npm test`',
      ),
    ).toEqual([]);
  });

  it('are refused when they do not', () => {
    expect(check('one\n\nsee `src/gone.ts`\n')).toEqual(['README.md:3']);
  });
});
