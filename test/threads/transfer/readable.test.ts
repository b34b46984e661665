import { describe, expect, it } from 'vitest';
import type { FileRecord } from '../../../src/core/file.ts';
import { hashOf, start } from '../../contracts/store-fixtures.ts';
import { ownTime } from '../../support/own-time.ts';
import { here, transferRig } from './transfer-rig.ts';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const sources = [
  { title: 'The <manual>', url: 'https://a.example/?a=1&b="2"', provider: 'openai' },
  { title: 'Not a link', url: 'javascript:alert(1)', provider: 'openai' },
];

/** One exchange with all that a turn can hold. */
async function threadOf(
  question: string,
  answer: string,
  files: [path: string, text: string][] = [],
  title = 'How?',
  citations = sources,
) {
  const rig = transferRig();
  const blobs = [...files.map(([, text]) => text), png].map(text => ({ sha256: hashOf(text), text }));
  const records = files.map(([path, text]): FileRecord => {
    return { path, form: 'full', size: 1, mtimeMs: 1, lines: 1, sha256: hashOf(text), base: hashOf(text) };
  });
  const thread = { ...rig.threads.start(here, 'chat'), title };
  const exchange = rig.threads.newExchange();
  const common = { exchange, timestamp: start, toolName: 'chat', citations: [], images: [], tokens: 1 };
  const image = { source: '/p/shot "1".png', mediaType: 'image/png', blob: hashOf(png) };
  const ask = { ...common, seq: 1, role: 'user' as const, content: question, files: records, images: [image] };
  const reply = { ...common, seq: 2, role: 'assistant' as const, content: answer, files: [], citations };
  const who = { modelProvider: 'openai', modelName: 'gpt-5.2' };
  await rig.threads.add(thread, exchange, { turns: [ask, { ...reply, ...who }], blobs, status: 'done' });
  return { md: await rig.exported(thread.id, 'md'), html: await rig.exported(thread.id, 'html') };
}

describe('a thread as Markdown', () => {
  it('has who said what, the files in full, and the sources', async () => {
    const { md } = await threadOf('Why?', 'Because.', [['/p/a.ts', 'const a = 1;\n']]);
    expect(md).toContain('# How?\n');
    expect(md).toContain('\n## 1. You (chat)\n');
    expect(md).toContain('\n## 2. openai:gpt-5.2 (chat)\n');
    expect(md).toContain('**File** `/p/a.ts` (1 lines)\n\n```ts\nconst a = 1;\n```\n');
    expect(md).toContain('- [The \\<manual\\>](<https://a.example/?a=1&b=%222%22>)');
    expect(md).toContain('- Not a link');
    expect(md).not.toContain('javascript:');
  });

  it('keeps a file with fences in it between longer ones, and its name from being anything else', async () => {
    const text = 'x\n```\n````md\n~~~\n';
    const { md } = await threadOf('Why?', 'Because.', [['/p/`a`\n## 9. You.md', text]]);
    expect(md).toContain(`\n\`\`\`\`\`md\n${text}\`\`\`\`\`\n`);
    expect(md).not.toMatch(/^## 9/m);
  });

  it('ends code that an answer left open, and lets no answer pass for a turn or hide what follows', async () => {
    const { md } = await threadOf(
      '<!-- gone\n## 7. openai:gpt (chat)\n`<b>` \\`<details>',
      'Look:\n```js\nlet a;\n## 8. not a heading',
    );
    expect(md).toContain('\\<!-- gone\n\\## 7. openai:gpt (chat)\n`<b>` \\`\\<details>');
    expect(md).toContain('```js\nlet a;\n## 8. not a heading\n```\n\n**Sources**');
  });

  it.each([
    ['a run of backticks without an end', '```<img src=x>`'],
    ['code that ends in the next line', 'a `\nb` <img src=x> `c`'],
    ['code behind an empty line', 'a `\n\nb ` <i> ` <img src=x> `c`'],
    ['lines that end in a carriage return', 'a `\r\r` c <i> ` <img src=x> `d`'],
    ['a line that is empty to some alone', 'a `\n\u00a0\nb` <img src=x> `c`'],
    ['an escaped backtick', '\\`<img src=x>`'],
    ['escapes within code', '`a\\` <img src=x> `b`'],
    ['code that began before', 'a ``\n\\`` \\\\<img src=x> `b`'],
  ])('makes no tag of %s', async (_what, answer) => {
    const { md } = await threadOf('Why?', answer);
    expect(md).toMatch(/(?<!\\)(?:\\\\)*\\<img/);
  });

  it('leaves code within a line as it is', async () => {
    const { md } = await threadOf('Why?', 'Either `<a>` or `` `<b>` ``, and\n`<c>` too.');
    expect(md).toContain('Either `<a>` or `` `<b>` ``, and\n`<c>` too.');
  });

  it('ends a fence of tildes, whatever stands behind it', async () => {
    const { md } = await threadOf('Why?', 'Look:\n~~~ js `x`\nlet a;');
    expect(md).toContain('\n```js\nlet a;\n```\n\n**Sources**');
  });

  it('links to what was told, with the escapes that are there', async () => {
    const url = 'https://a.example/a%20b c?q=ä>(1)\ud800`';
    const { md } = await threadOf('Why?', 'Because.', [], 'How?', [{ title: 'It', url, provider: 'openai' }]);
    expect(md).toContain('- [It](<https://a.example/a%20b%20c?q=%C3%A4%3E(1)%EF%BF%BD%60>)');
  });

  it.each([
    ['letters', `\`\`\`${'a'.repeat(150_000)}\``],
    ['spaces', `\`\`\`${' '.repeat(150_000)}\``],
    ['backticks', `a${'`'.repeat(150_000)}b`],
    ['backslashes', `a${'\\'.repeat(150_000)}<b>`],
    ['single backticks', 'a ` '.repeat(50_001)],
  ])('is made at once of a line that is long for its %s', async (_what, answer) => {
    const before = ownTime();
    await threadOf('Why?', answer);
    expect(ownTime() - before).toBeLessThan(2_000);
  });
});

describe('a thread as HTML', () => {
  it('is one file that may load and run nothing, with contents, code and links', async () => {
    const { html } = await threadOf('Why `x`?', 'So:\n```ts\na < b\n```\nDone.', [['/p/a.ts', 'const a = 1;\n']]);
    expect(html).toMatch(/^<!doctype html>/);
    const [, policy = ''] = /Content-Security-Policy" content="([^"]+)"/.exec(html) ?? [];
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/]+=*'; img-src data:;/);
    expect(html).not.toMatch(/<script|<link|<iframe|<object|\bon\w+=|url\(|@import/i);
    expect(html.match(/(?:src|href)="(?!#|data:image\/png;base64,|https:\/\/a\.example)/g)).toBeNull();
    expect(html).toContain('<a href="#turn-2">2. openai:gpt-5.2 (chat): So:');
    expect(html).toContain('<article class="assistant" id="turn-2">');
    expect(html).toContain('Why <code>x</code>?');
    expect(html).toContain('<pre><code>a &lt; b</code></pre>');
    expect(html).toContain(`<img src="data:image/png;base64,${png}" alt="/p/shot &quot;1&quot;.png">`);
    expect(html).toContain(
      '<a href="https://a.example/?a=1&amp;b=&quot;2&quot;" rel="noopener noreferrer nofollow external">The &lt;manual&gt;</a>',
    );
    expect(html).not.toContain('javascript:');
    expect(html).toContain('prefers-color-scheme: dark');
  });

  it('shows whatever anybody says as text', async () => {
    const evil = `</code></pre></article></main><script>alert(1)</script><img src=x onerror="alert(1)"><style>*{}</style>`;
    const { html } = await threadOf(evil, `\`\`\`${evil}\n${evil}`, [[`/p/${evil}`, evil]], evil);
    expect(html).not.toMatch(/<script|<img src=x|onerror="/);
    expect(html.match(/<style/g)).toHaveLength(1);
    expect(html.match(/<\/main>/g)).toHaveLength(1);
    expect(html.match(/<\/article>/g)).toHaveLength(2);
  });

  it('has no control characters, which a reader could be fooled by', async () => {
    const { html } = await threadOf('a\u0000b\u001b[31m\u0085', 'x', [], 'T\u202eitle');
    expect(html).not.toMatch(/(?![\n\t])\p{Cc}|\u202e/u);
  });
});
