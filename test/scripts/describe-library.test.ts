import { expect, it } from 'vitest';
import { describeLibrary } from '../../scripts/generate/describe-library.ts';
import { tempTree } from '../workspace/temp-tree.ts';

const sources = {
  'src/index.ts': `
/** Schemas of the package. */
export { z } from 'zod';
export { askAt as ask } from './ask.ts';
export type { Ask, AskEvent, AskOptions, Odds } from './ask.ts';
export type { ErrorCode } from './core/errors.ts';
`,
  'src/ask.ts': `
import type { Shared } from './shared.ts';

/** What is asked. */
export interface AskOptions {
  /** Seconds; default 5. */
  wait?: number;
  /** Steps | stages. */
  steps: {
    /** Ends it. */
    end(): void;
  };
}

/** More than options. */
export interface Ask extends AskOptions, Partial<Pick<Shared, 'kept'>> {
  /** Asks <again>. */
  again(wait: number): Promise<string>;
}

/** Happens. */
export type AskEvent =
  /** It began. */
  | 'begin'
  /** It is over. */
  | 'end';

/** Chances. */
export type Odds = {
  /** From 0 to 1. */
  odds: number;
};

/** Asks \`text\`, as \`wait\` says (default: 5 s). */
export async function askAt(text: string, { wait = 5 }: AskOptions): Promise<void> {
  await [text, wait];
}
`,
  'src/shared.ts': `
export interface Shared {
  /** Is kept. */
  kept: string;
  other: string;
}
`,
  'src/core/errors.ts': `
/** What failed. */
export type ErrorCode =
  | 'LIMIT'
  | 'CONFIG';
`,
  'docs/library.md':
    "# Library\n\n## Ask, and go on\n\n```ts\nimport { ask } from 'polylogue';\nawait ask('?', {});\n```\n",
  'docs/troubleshooting.md':
    '# Troubleshooting\n\n## CONFIG\n\nA setting is wrong. Mend it.\n\n## LIMIT\n\nToo much. Send less.\n',
};

function describeWith(change: Partial<Record<keyof typeof sources, string>> = {}): Promise<string> {
  const all = { ...sources, ...change };
  return describeLibrary(tempTree(all), all['docs/library.md'], all['docs/troubleshooting.md']);
}

it('the reference shows every exported name with signature, meaning, members and examples', async () => {
  const page = await describeWith();
  for (const text of [
    '- Functions: [ask](#ask)\n- Values: [z](#z)\n- Types: [Ask](#ask-1), [AskEvent](#askevent), [AskOptions](#askoptions), [Odds](#odds)\n- Errors: [ErrorCode](#errorcode)',
    '### ask\n\n```ts\nasync function ask(text: string, { wait = 5 }: AskOptions): Promise<void>\n```\n\nAsks `text`, as `wait` says (default: 5 s).\n\nExample: [Ask, and go on](../library.md#ask-and-go-on).',
    "### z\n\n```ts\nexport { z } from 'zod'\n```\n\nSchemas of the package.",
    'It also has the members of [AskOptions](#askoptions).\n\n| member | type | meaning |\n| --- | --- | --- |\n| `kept?` | `string` | Is kept. |\n| `again` | `(wait: number) => Promise<string>` | Asks \\<again>. |\n',
    '| `wait?` | `number` | Seconds; default 5. |\n| `steps` | `object` | Steps \\| stages. |\n| `steps.end` | `() => void` | Ends it. |',
    "| one of | meaning |\n| --- | --- |\n| `'begin'` | It began. |\n| `'end'` | It is over. |",
    '| `odds` | `number` | From 0 to 1. |',
    "| `'LIMIT'` | Too much. [What to do](../troubleshooting.md#limit). |",
  ])
    expect(page).toContain(text);
  expect(page).not.toContain('other');
});

it('the reference leaves members of a package to its own pages', async () => {
  const text = sources['src/ask.ts'].replace("'./shared.ts'", "'shared'");
  expect(await describeWith({ 'src/ask.ts': text })).toMatch(/### Ask\n[\s\S]*\| `again` /);
});

it.each([
  ['src/ask.ts', '/** What is asked. */', '', '"AskOptions" has no docstring'],
  ['src/ask.ts', '/** Seconds; default 5. */', '// Seconds', '"AskOptions.wait" has no docstring'],
  ['src/ask.ts', '/** Seconds; default 5. */', '/** */', '"AskOptions.wait" has no docstring'],
  ['src/ask.ts', 'Seconds; default 5.', 'Seconds.', '"AskOptions.wait" does not say what holds'],
  ['src/ask.ts', '/** Ends it. */', '', '"AskOptions.steps.end" has no docstring'],
  ['src/shared.ts', '/** Is kept. */', '', '"Ask.kept" has no docstring'],
  ['src/ask.ts', '/** It is over. */', '', `"AskEvent.'end'" has no docstring`],
  ['src/ask.ts', '/** It is over. */', '// Over.', `"AskEvent.'end'" has no docstring`],
  ['src/ask.ts', '/** Asks <again>. */', '[key: string]: unknown;', '"Ask.key" has no docstring'],
  ['src/ask.ts', '/** Asks `text`, as `wait` says (default: 5 s). */', '', '"ask" has no docstring'],
  ['src/ask.ts', 'as `wait` says', 'as it says', 'the docstring of "ask" does not say what `wait` is'],
  ['src/index.ts', '/** Schemas of the package. */', '', '"z" has no docstring'],
  ['src/index.ts', 'AskOptions, Odds', 'Odds', '"ask" names the type "AskOptions", which src/index.ts does not export'],
  ['src/ask.ts', 'wait?: number;', 'wait?: Shared;', '"AskOptions" names the type "Shared"'],
  ['src/index.ts', '/** Schemas', "export * from './shared.ts';\n/** Schemas", 'does not name what'],
  ['src/ask.ts', "Partial<Pick<Shared, 'kept'>>", 'Array<string>', 'members of "Array" are not found'],
  ['docs/library.md', 'ask(', 'other(', '"ask" is in no example of docs/library.md'],
  ['docs/troubleshooting.md', '## LIMIT', '## LIMITS', `"ErrorCode.'LIMIT'" has no docstring`],
] as const)('in %s, %s made %s is refused: %s', async (path, from, to, problem) => {
  const text = sources[path].replace(from, to).replace('import { ask }', 'import {}');
  await expect(describeWith({ [path]: text })).rejects.toThrow(problem);
});

it('the reference shows an arrow function as any other, without its body, and asks for the same words about it', async () => {
  const written = { 'src/index.ts': "export { limitError } from './core/errors.ts';\n", 'docs/troubleshooting.md': '' };
  const arrow = (doc: string) => ({
    ...written,
    'src/core/errors.ts': `/** ${doc} */\nexport const limitError = (told: string): Error =>\n  new Error(told);\n`,
  });
  expect(await describeWith(arrow('Makes an error that says `told`.'))).toContain(
    '```ts\nfunction limitError(told: string): Error\n```',
  );
  await expect(describeWith(arrow('Makes an error.'))).rejects.toThrow('"limitError" does not say what `told` is');
});
