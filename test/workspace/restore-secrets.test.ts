import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMask } from '../../src/observability/secret-masking.ts';
import {
  findSecrets,
  placeholdersIn,
  restoreSecrets,
  restoreSecretsInPatch,
} from '../../src/workspace/restore-secrets.ts';
import { createSandbox } from '../../src/workspace/sandbox.ts';
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
    expect(restoreSecrets(masked, await originals(masked))).toEqual({ text: config, count: 2, left: [] });
  });

  it('is not found under another thread, outside the roots, or when the secret is gone', async () => {
    expect((await originals(masked, { scopes: ['other'] })).size).toBe(0);
    expect((await originals(masked, { paths: [outside.path('theirs.toml')] })).size).toBe(0);
    await project.write('config.toml', config.replace(token, `ghp_${'9'.repeat(36)}`));
    const found = await originals(masked);
    expect([...found.values()]).toEqual([expect.stringContaining('MMMM')]);
    const { text, count, left } = restoreSecrets(masked, found);
    expect(text).not.toContain('9999');
    expect(count).toBe(1);
    expect(left).toEqual([{ placeholder: expect.stringMatching(/^\[masked:github_token:/), line: 2 }]);
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
    expect(restoreSecrets(forged, await originals(forged)).text).toBe(forged);
  });
});

describe('a patch over masked lines', () => {
  const apply = (patch: string) => {
    execFileSync('git', ['apply', '--recount', '--check', '-'], { cwd: project.root, input: patch });
    execFileSync('git', ['apply', '-'], { cwd: project.root, input: patch });
    return readFile(project.path('config.toml'), 'utf8');
  };
  /** As a model writes it, who saw the masked text. */
  const patchOf = (...hunks: string[]) => `--- a/config.toml\n+++ b/config.toml\n${hunks.join('')}`;
  const [first = '', tokenLine = '', , begin = '', body = '', end = ''] = masked.split('\n');

  it('has the secrets in what it keeps, what it removes and what it adds', async () => {
    const patch = patchOf(`@@ -1,3 +1,4 @@\n ${first}\n-${tokenLine}\n+# kept\n+${tokenLine}\n key = """\n`);
    const { text, count } = restoreSecretsInPatch(patch, await originals(patch));
    expect(count).toBe(2);
    expect(await apply(text)).toBe(config.replace('token', '# kept\ntoken'));
  });

  it('with a secret of several lines marks each of them, and counts them in all its hunks', async () => {
    expect(body).toMatch(/^\[masked:private_key:/);
    const patch = patchOf(
      `@@ -5,6 +5,6 @@\n ${body}\n ${end}\n """\n-port = 80\n+port = 81\n host = "a"\n one = 1\n`,
      '@@ -11,3 +11,2 @@\n two = 2\n three = 3\n-last = 4\n',
    );
    const { text } = restoreSecretsInPatch(patch, await originals(patch));
    expect(text).toContain('@@ -5,7 +5,7 @@');
    expect(text).toContain('@@ -12,3 +12,2 @@');
    expect(await apply(text)).toBe(config.replace('port = 80', 'port = 81').replace('last = 4\n', ''));
  });

  it('that removes or adds a secret of several lines does so in whole', async () => {
    const patch = patchOf(
      `@@ -2,7 +2,3 @@\n ${tokenLine}\n-key = """\n-${begin}\n-${body}\n-${end}\n-"""\n+none = 0\n port = 80\n`,
    );
    const { text } = restoreSecretsInPatch(patch, await originals(patch));
    expect(text).toContain('@@ -2,8 +2,3 @@');
    const without = await apply(text);
    expect(without).not.toContain('PRIVATE KEY');
    expect(without).toContain(`token = "${token}"\nnone = 0\nport = 80`);
  });

  it('is refused when a secret can not be put back, and says where', async () => {
    const patch = patchOf(`@@ -2,1 +2,1 @@\n-${tokenLine}\n+token = "[masked:github_token:00000000]"\n`);
    const found = await originals(patch);
    expect(() => restoreSecretsInPatch(patch, found)).toThrow(
      expect.objectContaining({ kind: 'security', details: expect.objectContaining({ data: { lines: [5] } }) }),
    );
  });

  it('without any is left as it is', async () => {
    const patch = patchOf('@@ -8,2 +8,2 @@\n-port = 80\n+port = 81\n host = "a"\n');
    const { text, count } = restoreSecretsInPatch(patch, new Map());
    expect({ applied: await apply(text), count }).toEqual({ applied: config.replace('80', '81'), count: 0 });
  });
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
    expect(found).toEqual({ text: `${other} other`, count: 2, left: [] });
  });
});
