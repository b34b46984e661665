import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMask } from '../../src/observability/secret-masking.ts';
import { findSecrets, maskFile, placeholdersIn, restoreSecrets } from '../../src/workspace/restore-secrets.ts';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { ownTime } from '../support/own-time.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

const token = `ghp_${'Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2'}`;
const key = ['-----BEGIN PRIVATE KEY-----', 'M'.repeat(64), 'Z'.repeat(64), '-----END PRIVATE KEY-----'].join('\n');
const config = `name = "demo"\ntoken = "${token}"\nkey = """\n${key}\n"""\nport = 80\nhost = "a"\none = 1\ntwo = 2\nthree = 3\nlast = 4\n`;
const { mask, maskSync } = createMask({ secret: 'pepper', keys: [] });

let project: TempProject;
let outside: TempProject;

beforeEach(async () => {
  project = await tempProject({ 'config.toml': config });
  outside = await tempProject({ 'theirs.toml': config });
});

afterEach(async () => {
  await project.dispose();
  await outside.dispose();
});

const masked = maskSync(config, 'thread').text;
const originals = (text: string, changes: object = {}) =>
  findSecrets({
    wanted: placeholdersIn(text),
    paths: [project.path('config.toml')],
    scopes: ['thread'],
    sandbox: createSandbox({ roots: [project.root], allowSecrets: false }),
    mask,
    maxBytes: 1e6,
    ...changes,
  });

describe('what placeholders stand for', () => {
  it('is found in the file that was masked, and makes it the same again', async () => {
    expect(masked).not.toContain(token);
    expect(masked).not.toContain('MMMM');
    expect(restoreSecrets(masked, await originals(masked))).toBe(config);
  });

  it('is not found under another thread, outside the roots, or when the secret is gone', async () => {
    expect((await originals(masked, { scopes: ['other'] })).size).toBe(0);
    expect((await originals(masked, { paths: [outside.path('theirs.toml')] })).size).toBe(0);
    await project.write('config.toml', config.replace(token, `ghp_${'9'.repeat(36)}`));
    const found = await originals(masked);
    expect([...found.values()]).toEqual([expect.stringContaining('MMMM')]);
    const text = restoreSecrets(masked, found);
    expect(text).not.toContain('9999');
    expect(text.split('\n')[1]).toMatch(/^token = "\[masked:github_token:/);
  });

  it('is not said when two secrets share a placeholder', async () => {
    const [name = ''] = placeholdersIn(masked);
    const clash = async (text: string) => ({
      text,
      found: {},
      places: [
        { start: 0, end: 3, kind: 'x', placeholder: name },
        { start: 4, end: 7, kind: 'x', placeholder: name },
      ],
    });
    expect((await originals(masked, { mask: clash })).size).toBe(0);
  });

  it('is never a guess: what nobody masked stays as it is', async () => {
    const forged = 'a [masked:github_token:00000000] b';
    expect(restoreSecrets(forged, await originals(forged))).toBe(forged);
  });
});

describe('a file that is written as it was shown', () => {
  const of = (text: string, scopes: [string, ...string[]] = ['thread']) =>
    maskFile({ mask, scopes }, 'config.toml', text);
  const [, tokenLine = '', , begin = '', body = '', end = ''] = masked.split('\n');

  it('has its secrets again, and tells their lines as they were written', async () => {
    const file = await of(config);
    expect(file.text).toBe(masked);
    const after = masked.replace(tokenLine, `# kept\n${tokenLine}`).replace('last = 4', 'last = 5');
    expect(await file.restore(after)).toEqual({
      text: config.replace('token', '# kept\ntoken').replace('last = 4', 'last = 5'),
      secrets: [
        { kind: 'github_token', kept: true, line: 3 },
        { kind: 'private_key', kept: true, line: 6 },
      ],
    });
  });

  it('may lose them', async () => {
    const file = await of(config);
    const key = [begin, body, end].join('\n');
    const { text, secrets } = await file.restore(masked.replace(key, 'none').replace(`${tokenLine}\n`, ''));
    expect({ text, secrets }).toEqual({
      text: 'name = "demo"\nkey = """\nnone\n"""\nport = 80\nhost = "a"\none = 1\ntwo = 2\nthree = 3\nlast = 4\n',
      secrets: [],
    });
  });

  it('takes the placeholders of an earlier thread', async () => {
    const file = await of(config, ['thread', 'before']);
    const earlier = maskSync(config, 'before').text;
    expect(earlier).not.toBe(masked);
    expect((await file.restore(file.canonical(earlier))).text).toBe(config);
  });

  it('is refused with a placeholder that stands for nothing in it, but for one that is a text of the file', async () => {
    const forged = '[masked:github_token:00000000]';
    await expect((await of(config)).restore(masked.replace(tokenLine, `token = "${forged}"`))).rejects.toMatchObject({
      kind: 'security',
      details: { class: 'masked', data: { lines: [2] } },
    });
    const text = `see ${forged}\nport = 80\n`;
    expect((await (await of(text)).restore(`look at ${forged}\n`)).text).toBe(`look at ${forged}\n`);
  });

  it('is judged quickly also where nothing of it is as it was', async () => {
    const lines = Array.from({ length: 8_000 }, (_, at) => `line ${at}`).join('\n');
    const { text } = await (await of(`${lines}\n${config}`)).restore(`${lines.replaceAll('line', 'row')}\n${masked}`);
    expect(text).toBe(`${lines.replaceAll('line', 'row')}\n${config}`);
  });
});

it.each([
  ['blanks', `a${' '.repeat(50_000)}b token = `],
  ['words', `${'w'.repeat(50_000)}, token = `],
])('a line with very many %s before its secret is judged in time', async (_, lead) => {
  const file = await maskFile({ mask, scopes: ['thread'] }, 'a.toml', `${lead}"${token}"\n`);
  const before = ownTime();
  expect((await file.restore(`1${file.text}`)).text).toBe(`1${lead}"${token}"\n`);
  expect(ownTime() - before).toBeLessThan(1_000);
});

describe('a secret that looks like what stands for another', () => {
  it('is put back as it is', () => {
    const [one, other] = ['[masked:password:00000001]', '[masked:password:00000002]'];
    const found = restoreSecrets(
      `${one} ${other}`,
      new Map([
        [one, other],
        [other, 'other'],
      ]),
    );
    expect(found).toBe(`${other} other`);
  });
});
