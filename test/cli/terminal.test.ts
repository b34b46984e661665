import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import type { FakeVendor } from '../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import { type Run, type RunOptions, runProgram } from './run-program.ts';

const char = (...codes: number[]) => String.fromCodePoint(...codes);
const esc = char(0x1b);
const bell = char(7);
const end = `${esc}\\`;

/** What a terminal obeys, or does not show. */
const kinds: readonly (readonly [kind: string, text: string])[] = [
  ['the title', `${esc}]0;owned${bell}`],
  ['the clipboard', `${esc}]52;c;cm0gLXJmIH4=${bell}`],
  ['a link', `${esc}]8;;https://evil.example${end}here${esc}]8;;${end}`],
  ['a notice of the system', `${esc}]9;hello${end}`],
  ['a color of the palette', `${esc}]4;1;rgb:00/00/00${bell}`],
  ['a picture inside the text', `${esc}]1337;File=inline=1:AAAA${bell}`],
  ['an empty screen', `${esc}[2J${esc}[H`],
  ['a moved cursor', `${esc}[3A${esc}[10D`],
  ['an erased line', `${esc}[2K`],
  ['hidden text', `${esc}[8mhidden${esc}[0m`],
  ['colors', `${esc}[45mmagenta`],
  ['the other screen', `${esc}[?1049h`],
  ['a paste mode', `${esc}[?2004l`],
  ['a question to the terminal', `${esc}[6n${esc}[c`],
  ['a scroll region', `${esc}[1;2r`],
  ['a full reset', `${esc}c`],
  ['another character set', `${esc}(0`],
  ['a device control string', `${esc}P+q544e${end}`],
  ['an application command', `${esc}_Gq=2;AAAA${end}`],
  ['a privacy message', `${esc}^secret${end}`],
  ['a start of string', `${esc}Xtext${end}`],
  ['an escape alone', `a${esc}`],
  ['a CSI of one character', `${char(0x9b)}2J`],
  ['an OSC of one character', `${char(0x9d)}0;owned${char(0x9c)}`],
  ['a DCS of one character', `${char(0x90)}q${char(0x9c)}`],
  ['a next line of one character', `a${char(0x85)}b`],
  ['backspaces', `rm${'\b'.repeat(2)}ls`],
  ['a carriage return', 'rm -rf\rls -la'],
  ['a bell, a form feed and a vertical tab', `${bell}\f\v`],
  ['delete', `a${char(0x7f)}b`],
  ['shifts out and in', `${char(0x0e)}lqk${char(0x0f)}`],
  ['an override of direction', `${char(0x202e)}gpj.exe${char(0x202c)}`],
  ['embeddings', `${char(0x202a)}a${char(0x202b)}b${char(0x202c)}${char(0x202d)}c`],
  ['isolates', `${char(0x2066)}a${char(0x2067)}b${char(0x2068)}c${char(0x2069)}`],
  ['marks of direction', `a${char(0x200e)}b${char(0x200f)}c${char(0x061c)}`],
  ['zero-width spaces', `pass${char(0x200b)}word${char(0x2060)}s${char(0xfeff)}`],
  ['joiners within Latin', `pay${char(0x200d)}pal${char(0x200c)}s`],
  ['invisible operators and fillers', `${char(0x2062)}${char(0x3164)}${char(0x115f)}${char(0xad)}${char(0x34f)}`],
  ['tag characters', `${[...'rm -rf'].map(each => char(0xe0000 + (each.codePointAt(0) ?? 0))).join('')}`],
  ['variation selectors in a row', `a${char(0xfe01, 0xfe02, 0xe0101, 0xe0102)}`],
  ['separators of lines and paragraphs', `a${char(0x2028)}b${char(0x2029)}c`],
  ['entities of HTML', 'a&#27;[2Jb&#x1b;]0;owned&#7;c&#155;2J&#x202e;d&#8203;e'],
  ['shorthand and annotation controls', `${char(0xfff9)}a${char(0xfffa)}b${char(0xfffb)}${char(0x1bca0)}`],
];

/** Text as people write it, which stays as it is. */
const controls = [
  `${char(0x1f468, 0x200d, 0x1f469, 0x200d, 0x1f467, 0x200d, 0x1f466)} ${char(0x1f3c3, 0x1f3fd, 0x200d, 0x2640, 0xfe0f)} ${char(0x2764, 0xfe0f)}`,
  `${char(0x1f3f4, 0xe0067, 0xe0062, 0xe0073, 0xe0063, 0xe0074, 0xe007f)} ${char(0x1f1e9, 0x1f1ea)} 1${char(0xfe0f, 0x20e3)}`,
  'مرحبا بالعالم، كيف الحال؟',
  `שלום עולם${char(0x200f)} (עברית)`,
  `می${char(0x200c)}خواهم`,
  `क्${char(0x200d)}ष and ${char(0x845b, 0xe0100)}`,
  'col1\tcol2\n\tindented',
  '日本語 — naïve café; "x" → y ≤ z, 42 # *',
];

const said = (texts: readonly string[]) => texts.map((text, at) => `<${at}>${text}</${at}>`).join('\n');
const attack = said(kinds.map(([, text]) => text));
const plain = said(controls);
/** As Markdown, where a tab at the beginning of a line within a paragraph means nothing. */
const shown = plain.replace('\n\t', '\n');
const answer = `${attack}\n${plain}\nend.`;

/** What this program itself sends to a terminal: its colors, and the line of progress on stderr. */
const own = new RegExp(`${esc}\\[(?:1|2|3|4|22|23|24|31|32|33|34|36|39)m`, 'g');
const progress = `\r${esc}[2K`;
const steering = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u2028-\\u202e\\u2060-\\u206f\\u3164\\u115f\\u00ad\\u034f' +
    '\\ufeff\\ufe01\\ufe02\\ufff9-\\ufffb\\u{e0101}\\u{e0102}\\u{1bca0}]',
  'u',
);

function expectHarmless({ out, err }: Run): void {
  expect(steering.exec(out.replace(own, ''))).toBeNull();
  expect(steering.exec(err.replaceAll(progress, '').replace(own, ''))).toBeNull();
  // Letters of the tag range, but for the flag's.
  expect(out.replaceAll(controls[1] ?? '', '')).not.toMatch(/[\u{e0000}-\u{e007f}]/u);
  expect(out).not.toContain(`pay${char(0x200d)}`);
}

let vendor: FakeVendor;
let project: TempProject;
let env: Record<string, string>;

beforeAll(async () => {
  vendor = await startOpenAi();
  project = await tempProject({
    'a.md': `# Where the treasure lies\n\n${attack.replaceAll('\r', ' ')}\nThe treasure.\n`,
    'src/a.ts': 'export const a = 1;\n',
  });
  env = {
    ...vendorEnv({ openai: vendor.url }),
    DEFAULT_MODEL: 'openai:gpt-5.2',
    PROJECT_ROOT: project.root,
    POLYLOGUE_HOME: project.path('.home'),
    COMMS_LOG: 'true',
  };
});
afterAll(async () => {
  await vendor.close();
  await project.dispose();
});

const run = (args: string[], options: Partial<RunOptions> = {}) =>
  runProgram(args, { cwd: project.root, env, terminal: true, ...options });

describe('what a model says, on a terminal', () => {
  it.each([1, 150, 1_000])('is shown and steers nothing in an answer of %i pieces', async chunks => {
    vendor.script({ answer, chunks });
    const printed = await run(['ask', 'What?']);
    expect(printed.code).toBe(0);
    expectHarmless(printed);
    expect(printed.out).toContain('\\u{1b}]52;c;cm0gLXJmIH4=\\u{7}');
    for (const at of kinds.keys()) expect(printed.out).toMatch(new RegExp(`<${at}>[^]*\\\\u\\{[^]*</${at}>`));
    expect(printed.out).toContain(shown);
    expect(printed.out.endsWith('end.\n')).toBe(true);
  });

  it('keeps each character of ordinary text where it is cut anywhere', async () => {
    vendor.script({ answer: plain, chunks: 1_000 });
    expect(await run(['ask', 'What?'])).toMatchObject({ code: 0, out: `${shown}\n` });
  });

  const commands: [name: string, args: string[], options?: Partial<RunOptions>][] = [
    ['agent', ['agent', 'Look.']],
    ['prompt', ['prompt', 'What?', '--models', 'openai:gpt-5.2,openai:gpt-5-mini']],
    ['diagnose', ['diagnose'], { input: 'Error: b\n' }],
    ['consensus', ['consensus', 'Is it?', '--model', 'openai:gpt-5.2', '--model', 'openai:gpt-5-mini']],
    ['threads read', ['threads', 'read', 'last']],
    ['threads search', ['threads', 'search', 'clipboard', 'owned']],
    ['threads list', ['threads']],
    ['export as Markdown', ['export', 'last', '--format', 'md']],
    ['export as JSON lines', ['export', 'last', '--format', 'jsonl']],
    ['replay', ['replay', 'last']],
    ['replay list', ['replay']],
    ['search', ['search', 'where', 'does', 'the', 'treasure', 'lie']],
  ];
  it.each(commands)('steers nothing by %s', async (_name, args, options) => {
    vendor.byDefault({ answer, chunks: 40 });
    vendor.script({ answer, chunks: 40 });
    await run(['ask', `About ${attack.replaceAll('\r', ' ')}`]);
    const printed = await run(args, options);
    expectHarmless(printed);
    expect(printed.out + printed.err).not.toBe('');
    vendor.byDefault({});
  });

  it('steers nothing by the usage, the models and the doctor, whose own colors are there', async () => {
    for (const args of [['usage', '--by', 'thread'], ['models'], ['route', attack.slice(0, 400)], ['doctor']]) {
      const printed = await run(args);
      expectHarmless(printed);
      expect(printed.out).toMatch(own);
    }
  });

  it('steers nothing by a vendor’s error, a file’s name or a misspelled word on stderr', async () => {
    const error = { error: { message: `no ${attack}`, type: 'invalid_request_error', code: null, param: null } };
    vendor.script({ fault: 'status', status: 400, body: error });
    const failed = await run(['ask', 'What?']);
    expect(failed.code).toBe(1);
    const named = await run(['ask', 'What?', '--file', `src/${esc}]0;owned${bell}${char(0x202e)}.ts`]);
    const unknown = await run([`${esc}[2Jask`]);
    const flag = await run(['ask', `--${char(0x9b)}2J${char(0x202e)}`]);
    for (const printed of [failed, named, unknown, flag]) {
      expectHarmless(printed);
      expect(printed.err).toMatch(/\\u\{|no </);
    }
  });
});

describe('what goes elsewhere than to a terminal', () => {
  it('is harmless in a pipe as well, where a pager or a log shows it', async () => {
    vendor.script({ answer, chunks: 90 });
    const printed = await run(['ask', 'What?'], { terminal: false, ownProcess: true });
    expectHarmless(printed);
    expect(printed.out).toContain(plain);
    expect(printed.out).not.toContain(esc);
  });

  it('has the same value in JSON, in harmless text', async () => {
    vendor.script({ answer, chunks: 90 });
    const printed = await run(['ask', 'What?', '--json']);
    expectHarmless(printed);
    expect(JSON.parse(printed.out).content).toBe(answer);
    const misused = await run(['ask', '--json', `--${char(0x9b)}2J`]);
    expectHarmless(misused);
    expect(JSON.parse(misused.out).error.message).toContain(`${char(0x9b)}2J`);
  });

  it('is an export as it is, in a pipe and in a file', async () => {
    vendor.script({ answer: `${answer}`, chunks: 90 });
    await run(['ask', 'What?']);
    const piped = await run(['export', 'last'], { terminal: false });
    const file = project.path('talk.jsonl');
    await run(['export', 'last', '--output', file]);
    const imported = await run(['import', file], { env: { ...env, POLYLOGUE_HOME: project.path('.other') } });
    expect(imported).toMatchObject({ code: 0 });
    expect(piped.out).toContain(char(0x202e));
    const turns = piped.out
      .trim()
      .split('\n')
      .map(line => JSON.stringify(JSON.parse(line)));
    expect(turns.some(line => line.includes(JSON.stringify(answer).slice(1, -1)))).toBe(true);
  });
});
