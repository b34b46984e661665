import { writeFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createMask, maskKey } from '../../src/observability/secret-masking.ts';
import { seededRandom } from '../support/random.ts';
import { tempProject } from '../support/temp-project.ts';

const base62 = 'q7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0JsAeUiOoTzXbVnMkLpQ';
const mask = createMask({ secret: 'pepper', keys: [] });
const hidden = (text: string) => mask.maskSync(text, 'thread').text;

/** Kind, and a secret of that form. */
const known: [kind: string, secret: string][] = [
  ['openai_key', `sk-proj-${base62}_x`],
  ['openai_key', `sk-svcacct-${base62}`],
  ['api_key', `sk-${base62}`],
  ['api_key', 'sk-0f1e2d3c4b5a69788796a5b4c3d2e1f0'],
  ['anthropic_key', `sk-ant-api03-${base62}-AA`],
  ['openrouter_key', `sk-or-v1-${'0123456789abcdef'.repeat(4)}`],
  ['google_key', 'AIzaSyD3x_9-kQ2mV7bN1cZ5lP0oW8eR4tY6uI1'],
  ['xai_key', `xai-${base62}${base62}`],
  ['groq_key', `gsk_${base62}`],
  ['zhipu_key', '0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp'],
  ['github_token', `ghp_${base62.slice(0, 36)}`],
  ['github_token', `gho_${base62.slice(0, 36)}`],
  ['github_token', `github_pat_11ABCDEFG0${base62}`],
  ['gitlab_token', 'glpat-x7Zt9Kx2Bv4Lm8Np1Rw5'],
  ['aws_access_key', 'AKIAQ3EGTHZK4V2MPL7X'],
  ['slack_token', 'xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx'],
  ['stripe_key', 'sk_live_51Hq7Zt9Kx2Bv4Lm8Np1Rw5Yc'],
  ['npm_token', `npm_${base62.slice(0, 36)}`],
  ['huggingface_token', `hf_${base62.slice(0, 34)}`],
  ['telegram_token', '123456789:AAq7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0JsAe'],
  ['jwt', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U'],
];

describe('masking known formats', () => {
  it.each(known)('replaces %s wherever it stands: %s', (kind, secret) => {
    const surroundings = [
      (key: string) => key,
      (key: string) => `before ${key} after`,
      (key: string) => `{"a":"${key}"}`,
      (key: string) => `"{\\"a\\":\\"x\\n${key}\\"}"`,
      (key: string) => `--key=${key}`,
      (key: string) => `https://host/path?value%3D${key}&x=1`,
      (key: string) => `(${key}).`,
    ];
    for (const within of surroundings) {
      const masked = mask.maskSync(within(secret), 'thread');
      expect(masked.text).not.toContain(secret.slice(-12));
      expect(masked.text).toMatch(
        new RegExp(`^${escaped(within('§')).replace('§', `\\[masked:${kind}:[0-9a-f]{8}\\]`)}$`),
      );
      expect(masked.found).toEqual({ [kind]: 1 });
    }
  });

  it('replaces the secret half of an AWS key near the public one, and after its name', () => {
    const secret = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzQQ71KEYs';
    expect(hidden(`AKIAQ3EGTHZK4V2MPL7X,${secret}`)).not.toContain('K7MDENG');
    expect(hidden(`aws_secret_access_key = ${secret}\n`)).toMatch(
      /^aws_secret_access_key = \[masked:aws_secret_key:.{8}\]\n$/,
    );
    expect(hidden(`"SecretAccessKey": "${secret}"`)).not.toContain('K7MDENG');
  });

  it('replaces what follows Bearer and other authorization schemes', () => {
    expect(hidden('Authorization: Bearer abc.DEF_123-xyz')).toMatch(
      /^Authorization: Bearer \[masked:bearer_token:.{8}\]$/,
    );
    expect(hidden('authorization: Basic dXNlcjpwYXNzd29yZA==')).not.toContain('dXNlcjpw');
    expect(hidden(`curl -H 'x-api-key: ${base62}'`)).not.toContain(base62);
    expect(hidden('the scheme is Bearer AuthenticationScheme')).toContain('AuthenticationScheme');
  });

  it('replaces the password in an address and keeps the rest', () => {
    expect(hidden('https://user:pw@host/x')).toMatch(/^https:\/\/user:\[masked:url_password:.{8}\]@host\/x$/);
    expect(hidden('postgres://app:p@ss:w0rd@db:5432/x')).toMatch(/^postgres:\/\/app:\[masked:.*\]@db:5432\/x$/);
    const harmless = [
      'http://localhost:8080/user@example.org',
      'http://localhost:8080?mail=a@b.c',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a template is what the text is
      'postgres://${user}:${password}@host',
      'git@github.com:owner/repository.git',
    ];
    for (const text of harmless) expect(hidden(text)).toBe(text);
  });

  it('replaces values that are named as secrets only when they look random', () => {
    for (const text of [
      `api_key = "${base62.slice(0, 32)}"`,
      `"client_secret": '${base62.slice(0, 40)}',`,
      `AZURE_API_KEY=0f1e2d3c4b5a69788796a5b4c3d2e1f0`,
      `{\\"password\\": \\"${base62.slice(0, 20)}\\"}`,
      `https://host/?api_key=${base62.slice(0, 24)}`,
    ]) {
      expect(hidden(text), text).toMatch(/\[masked:(secret|url_secret):/);
    }
  });

  it.each([
    "password = 'hunter'",
    "const dbPassword = 'Tr0ub4dor'",
    'self.admin_password="s3cr3t!"',
    'passwd: hunter22',
    'db:\n  password: Sommer2019 # of the test system\n',
    '"dbPassword": "P@ssw0rd"',
    '{\\"password\\": \\"hunter22\\"}',
    'Server=db;User Id=sa;Password=abc12345;Encrypt=true',
    'secret=ab12cd34ef',
    'api_key: "k3y4nobody"',
    "passphrase => 'Ki55me'",
    'PGPASSWORD=hunter22 psql -h db',
    '@@ -1 +1 @@\n-debug=1\n+DB_PASSWORD=hunter22',
    '+  password: hunter22',
    "password: string = 'hunter22';",
    'const DB_PASSWORD: &\'static str = "hunter22";',
    'api_key: Optional[str] = "k3y4nobody"',
    'const password string = "hunter22"',
    "$config['password'] = 'hunter22';",
    'os.environ["DB_PASSWORD"] = "hunter22"',
    '"Server=db;User Id=sa;Password=abc12345"',
    '<password>hunter22</password>',
    '<property name="db.password" value="hunter22"/>',
    "CREATE ROLE app WITH PASSWORD 'hunter22';",
    "CREATE USER 'app'@'%' IDENTIFIED BY 'hunter22';",
  ])('replaces the value that is written down for a password or key: %s', text => {
    expect(hidden(text)).toMatch(/\[masked:(password|secret):[0-9a-f]{8}\]/);
    expect(hidden(text)).not.toMatch(/unter|Tr0ub|s3cr3t!|Sommer|P@ss|abc12345|ab12cd|k3y4|Ki55/);
  });

  it.each([
    'password: string; secret?: string; apiKey: ApiKey2;',
    'const password = getPassword2(); secret = await read1Secret();',
    'password = process.env.PASSWORD1; password: options.password2',
    "password: 'string', passwd: 'required', secret = 'undefined', pwd: '/home/ann/work2'",
    'password = "<your password1>"; passwd: "xxxxxx1"; apiKey: "your-api-key-1"; password: changeme1',
    "password: 'changeme', secret: 'auth.secret.label', autocomplete_password: 'current-password'",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template is what the text is
    'password: ${DB_PASSWORD1}\npassword: "{{ db_password1 }}"\npassword: !vault 1a2b3c\npassword = None',
    'PASSWORD=$(cat /run/secrets/p1)\npwd=/srv/app1\nsecret: sha256-legacy\npassword: 12\n',
    'password1 = password2\nif (password === password2) password = other1',
    "it('hides the password: a value of 12 letters')",
    'The password: choose12 letters or more.',
    "password: '#user-password', pwd: 'input[type=password]', dbPassword: '@password', password: 'input#password'",
    "'password' => 'required|string|min:8|confirmed', 'password' => 'hashed', \"password\": \"min=8,max=20\"",
    '"login.password": "Passwort?", "error.password": "Required!", \'password\' => \'Contraseña*\'',
    'interface Kept {\n  secret: Uint8Array\n  password: Int8Array\n  pwd: uint32\n}',
    'resetPassword: \'v1/auth\', android:password="@string/password1"',
    '<password>#{db.password1}</password><label>Password</label><label for="password">Password1</label>',
    'fields = ["email", "password", "password2"]; password: string = newPassword2; pwd: Map<string, string> = read2()',
  ])('leaves types, calls, references and placeholders alone: %s', text => {
    expect(hidden(text)).toBe(text);
  });

  it.each([
    'const id = "550e8400-e29b-41d4-a716-446655440000";',
    'const commit = "da39a3ee5e6b4b0d3255bfef95601890afd80709";',
    '"integrity": "sha512-q7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0JsAeUiOoTzXbVnMkLpQ=="',
    `<img src="data:image/png;base64,${Buffer.from(Array.from({ length: 600 }, (_, i) => (i * 7919) % 251)).toString('base64')}">`,
    'pip install sk-learn-contrib-2024-extensions-for-python3',
    '.sk-fading-circle .sk-circle12:before { animation: sk-circleFadeDelay 1.2s }',
    'npm_config_registry npm_lifecycle_event npm_package_json hf_hub_download',
    'task-0123456789abcdef0123456789 risk-0123456789abcdef0123456789',
    'password: currentPasswordFieldValue2, token = "continuationTokenFromRequest1"',
    'const apiKey = process.env.OPENAI_API_KEY ?? "your_openai_api_key_here";',
    'secret: "my-app-v1-2-3-test-4-stage-5"',
    'token = "2024-01-02T03:04:05.678Z"',
    'password = "correct horse battery staple 12"',
    'requestId: "550e8400-e29b-41d4-a716-446655440000"',
    'assets/d41d8cd98f00b204e9800998ecf8427e.bundle0123456789.js',
    'aVeryLongIdentifierThatGoesOnAndOnWithoutEverBeingASecret1234567890',
    'const pem = "-----BEGIN PRIVATE KEY-----\\n" + key + "\\n-----END PRIVATE KEY-----";',
    "const begin = '-----BEGIN PRIVATE KEY-----'; const end = '-----END PRIVATE KEY-----';",
    'Set the header to `Authorization: Bearer <token>` or `Authorization: Bearer YOUR_TOKEN`.',
    'eyJhbGciOiJIUzI1NiJ9 is the head of a token',
  ])('leaves ordinary text as it is: %s', text => {
    expect(mask.maskSync(text, 'thread')).toEqual({ text, found: {} });
  });
});

describe('masking private keys', () => {
  const lines = Array.from({ length: 5 }, (_, i) => `${base62}${i}ABCDEFGHIJKLMNO`.slice(0, 64));
  const body = `${lines.join('\n')}\nAb3=`;
  const begin = '-----BEGIN RSA PRIVATE KEY-----';
  const end = '-----END RSA PRIVATE KEY-----';
  const placeholder = /\[masked:private_key:[0-9a-f]{8}\]/;
  const clean = (text: string) => {
    for (const line of [...lines, 'Ab3=']) expect(text).not.toContain(line);
    expect(text).toMatch(placeholder);
  };

  it('replaces the body and keeps the marks', () => {
    expect(hidden(`a\n${begin}\n${body}\n${end}\nb`)).toMatch(
      new RegExp(`^a\n${begin}\n${placeholder.source}\n${end}\nb$`),
    );
  });

  it('replaces a body with headers, within JSON, in a comment, in a diff, with line numbers', () => {
    clean(hidden(`${begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n${body}\n${end}`));
    clean(hidden(JSON.stringify({ key: `${begin}\n${body}\n${end}` })));
    clean(hidden(JSON.stringify(JSON.stringify({ key: `${begin}\r\n${body}\r\n${end}` }))));
    clean(hidden(`${begin}\n${body}\n${end}`.replace(/^/gm, '# ')));
    clean(hidden(`${begin}\n${body}\n${end}`.replace(/^/gm, '+')));
    clean(hidden(`${begin}\n${body}\n${end}`.replace(/^/gm, '-')));
    clean(hidden(`${begin}\n${body}\n${end}`.replace(/^/gm, '  12│ ')));
  });

  it('replaces what is left of a key that was cut off', () => {
    clean(hidden(`${begin}\n${body}`.slice(0, -10)));
    clean(hidden(`${body.slice(30)}\n${end}\n`));
    expect(hidden(`${begin}\n${lines[0]}\nAnd then prose goes on.`)).toMatch(/And then prose goes on\.$/);
  });
});

describe('placeholders', () => {
  const secret = `ghp_${base62.slice(0, 36)}`;

  it('are the same for the same secret within one scope and differ between scopes and keys', () => {
    const [first, second] = hidden(`${secret} ${secret}`).split(' ');
    expect(first).toBe(second);
    expect(hidden(`https://x:${secret}@host`)).toBe(`https://x:${first}@host`);
    expect(hidden(`token: "${secret}"`)).toBe(`token: "${first}"`);
    expect(mask.maskSync(secret, 'other').text).not.toBe(first);
    expect(createMask({ secret: 'salt', keys: [] }).maskSync(secret, 'thread').text).not.toBe(first);
  });

  it('are left alone when a masked text is masked again', () => {
    for (const [, key] of known) {
      const once = hidden(`https://u:${key}@h Bearer ${key} api_key="${key}" password=${key}`);
      expect(hidden(once)).toBe(once);
    }
  });

  it('are counted by kind', async () => {
    expect((await mask.mask(`${secret} ${secret} https://a:b@c`, 't')).found).toEqual({
      github_token: 2,
      url_password: 1,
    });
  });
});

describe("the operator's own keys", () => {
  const own = 'CANARY+with/odd"characters';
  const ownMask = createMask({ secret: 'pepper', keys: [own, 'lm-studio', 'x1', 'not needed'] });

  it('are masked as they stand, within addresses and within JSON', () => {
    for (const text of [`a${own}b`, `?k=${encodeURIComponent(own)}`, JSON.stringify({ own: `a${own}b` })]) {
      expect(ownMask.maskSync(text, 't').text).toMatch(/\[masked:own_key:/);
      expect(ownMask.maskSync(text, 't').text).not.toMatch(/CANARY|odd/);
    }
  });

  it.each([0, 1, 2, 3, 4])('are masked in base64 and as bytes, behind %s others', before => {
    const bytes = Buffer.concat([Buffer.from('~'.repeat(before)), Buffer.from(`${own}?`)]);
    const forms = ['base64', 'base64url', 'hex'] as const;
    for (const text of [...forms.map(form => bytes.toString(form)), bytes.toString('hex').toUpperCase()])
      expect(ownMask.maskSync(`It is ${text}.`, 't').text, text).toMatch(
        /^It is .{0,12}\[masked:own_key:.{8}\].{0,4}\.$/,
      );
  });

  it('are masked in the base64 of addresses', () => {
    const key = 'Own>>>Key???9';
    expect(btoa(key)).toMatch(/[+].*[/]/);
    const text = `It is ${Buffer.from(key).toString('base64url')}.`;
    const { found } = createMask({ secret: 'pepper', keys: [key] }).maskSync(text, 't');
    expect(found).toEqual({ own_key: 1 });
  });

  it('do not mask ordinary words that someone gave as a key', () => {
    const text = 'lm-studio runs, a key is not needed, x1';
    expect(ownMask.maskSync(text, 't').text).toBe(text);
    const short = createMask({ secret: 'pepper', keys: ['Ab1Cd2E', 'Zb1Cd2Ef'] });
    expect(short.maskSync('Ab1Cd2E Zb1Cd2Ef', 't').text).toMatch(/^Ab1Cd2E \[masked:own_key:.{8}\]$/);
  });

  it('are two where they touch', () => {
    const both = createMask({ secret: 'pepper', keys: ['Own-Key-1', 'Own-Key-2'] });
    expect(both.maskSync('Own-Key-1Own-Key-2', 't').found).toEqual({ own_key: 2 });
  });
});

describe('secrets that come up while the process runs', () => {
  it('are masked from then on, those of before for a while yet, in texts that were seen too', () => {
    const { know, maskDeep } = createMask({ secret: 'pepper', keys: [] });
    const isKnown = (secret: string) => maskDeep(secret) !== secret;
    const [one, other] = ['Daemon-Token-1', '6c1f4ab2-1111-4222-8333-944445555666'];
    expect([one, other].map(isKnown)).toEqual([false, false]);
    know([one]);
    expect([one, other].map(isKnown)).toEqual([true, false]);
    for (let round = 0; round < 70; round++) know([other]);
    expect([one, other].map(isKnown)).toEqual([true, true]);
    for (let round = 0; round < 64; round++) know([`Daemon-Token-of-round-${round}`]);
    expect([one, other].map(isKnown)).toEqual([false, true]);
    know(['Daemon-Token-of-the-end']);
    expect([one, other].map(isKnown)).toEqual([false, false]);
  });

  it('are remembered where they were told, in every log, and not by the rules alone', async () => {
    const { mask, maskSync, maskDeep } = createMask({ secret: 'pepper', keys: [] });
    const word = 'correct-horse-battery';
    expect(maskDeep(word)).toBe(word);
    mask.remember?.([{ kind: 'password', value: word }], 'here');
    const masked = /^\[masked:password:[0-9a-f]{8}\]$/;
    expect(maskSync(word, 'here').text).toMatch(masked);
    expect(maskSync(word, 'there').text).toBe(word);
    expect(maskDeep(word)).toMatch(masked);
    expect((await mask(word, 'here')).text).toMatch(masked);
    expect((await mask(word, 'here', 'model')).text).toMatch(masked);
    expect((await mask(word, 'here', 'rules')).text).toBe(word);
    const chosen = "password = 'hunter22'";
    expect((await mask(chosen, 'here', 'model')).text).toBe(chosen);
    expect((await mask(chosen, 'here', 'rules')).text).toMatch(/masked:password/);
  });
});

describe('the key of the placeholders', () => {
  const random = seededRandom(1);

  it('is that of the process which made it first, where two make one at once', async () => {
    const { root: home, path } = await tempProject({});
    const theirs = 'the key of the other process, which was a little faster';
    let made = 0;
    // The third one names the draft, after a look at the file.
    const uuid = () => {
      if (++made === 3) writeFileSync(path('mask.key'), theirs);
      return random.uuid();
    };
    expect(maskKey(home, { ...random, uuid })).toBe(theirs);
    expect(await readdir(home)).toEqual(['mask.key']);
  });

  it('is made once, for this user alone, and is one of the process where it cannot be kept', async () => {
    const home = await tempProject({ 'a file': '' });
    const folder = join(home.root, 'deep', 'home');
    const first = maskKey(folder, random);
    expect(first).toHaveLength(72);
    expect([maskKey(folder, random), await readFile(join(folder, 'mask.key'), 'utf8')]).toEqual([first, first]);
    expect(await readdir(folder)).toEqual(['mask.key']);
    const modes = await Promise.all(
      [folder, join(folder, 'mask.key')].map(async path => (await stat(path)).mode & 0o777),
    );
    expect(modes).toEqual([0o700, 0o600]);
    for (const none of [undefined, home.path('a file/home')]) {
      const key = maskKey(none, random);
      expect(key).toHaveLength(72);
      expect(maskKey(none, random)).not.toBe(key);
    }
    const other = home.path('other/mask.key');
    await mkdir(other, { recursive: true });
    const refused = (why: string) => {
      expect(() => maskKey(home.path('other'), random)).toThrow(
        expect.objectContaining({
          message: expect.stringContaining(`${other}: ${why}`),
          details: expect.objectContaining({ code: 'CONFIG', next: expect.stringContaining(`mv '${other}'`) }),
        }),
      );
    };
    refused('EISDIR');
    await rm(other, { recursive: true });
    for (const weak of ['', 'short', '\0'.repeat(72)]) {
      await writeFile(other, weak);
      refused('it is damaged');
    }
    await rm(other);
    expect(maskKey(home.path('other'), random)).toHaveLength(72);
    await home.dispose();
  });
});

describe('what is remembered of a log', () => {
  it('never lets a secret through that stood in a text seen before', () => {
    const many = createMask({ secret: 'pepper', keys: ['My-Own-Key-1'] });
    const texts = ['chat', 'My-Own-Key-1', 'a key: My-Own-Key-1', `sk-${base62}`];
    const once = texts.map(text => many.maskDeep({ text }));
    for (let index = 0; index < 5_000; index++) many.maskDeep(`filler ${index}`);
    expect(texts.map(text => many.maskDeep({ text }))).toEqual(once);
    expect(JSON.stringify(once)).not.toMatch(/My-Own-Key|q7Zt9Kx2/);
    expect(once[0]).toEqual({ text: 'chat' });
  });

  it('copies a field with the name of a prototype as any other', () => {
    const { maskDeep } = createMask({ secret: 'pepper', keys: ['k-0123456789'] });
    const copy = maskDeep({ payload: JSON.parse('{"__proto__":{"note":"k-0123456789"},"plain":1}') });
    expect(JSON.stringify(copy)).toMatch(
      /^\{"payload":\{"__proto__":\{"note":"\[masked:own_key:\w+\]"\},"plain":1\}\}$/,
    );
  });
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

describe('many short texts', () => {
  it.each([
    ['short', 200, 2_000, 5],
    ['middling', 20, 20_000, 5],
    ['few', 10, 2_000, 0],
    ['one that is long', 1, 300_000, 5],
  ])('leave others their turn between them: %s', async (_, count, size, least) => {
    let turns = 0;
    let over = false;
    const others = async () => {
      for (; !over; turns++) await new Promise(resolve => setImmediate(resolve));
    };
    const running = others();
    turns = 0;
    for (let n = 0; n < count; n++) await mask.mask('an ordinary line of text\n'.repeat(size / 25), 'thread');
    const seen = turns;
    over = true;
    await running;
    if (least === 0) expect(seen).toBe(0);
    else expect(seen).toBeGreaterThanOrEqual(least);
  });
});
