import { expect, it } from 'vitest';
import { createMask } from '../../src/observability/secret-masking.ts';
import { seededRandom } from '../support/random.ts';

const mask = createMask({ secret: 'pepper', keys: [] });
const hidden = (text: string) => mask.maskSync(text, 'thread').text;

const { fraction } = seededRandom(20_261_130);

/** As ranges of a pattern: `a-z0-9`. */
const expanded = (ranges: string) =>
  ranges.replace(/(\w)-(\w)/g, (_, from: string, to: string) =>
    String.fromCharCode(
      ...Array.from({ length: to.charCodeAt(0) - from.charCodeAt(0) + 1 }, (_, at) => from.charCodeAt(0) + at),
    ),
  );

const [hex, base62] = [expanded('0-9a-f'), expanded('A-Za-z0-9')];

const alphabets: Readonly<Record<string, string>> = {
  h: hex,
  w: base62,
  u: `${base62}-_`,
  b: `${base62}+/`,
  l: expanded('a-z'),
  c: expanded('A-Z0-9'),
  s: expanded('a-z0-9'),
  t: expanded('a-z2-7'),
  d: `${expanded('a-z0-9')}!@#$%^&*(-_=+)`,
  x: `${base62}!@#$%^&*()-_ []{}<>~\`+=,.;:/?|`,
};

const pick = (alphabet: string, length: number) =>
  Array.from({ length }, () => alphabet.charAt(Math.floor(fraction() * alphabet.length))).join('');

/** `{w20}`: so many characters of an alphabet. Four equal ones in a row stand for a value that is to be filled in. */
const made = (format: string): string => {
  const text = format.replace(/\{([a-z])(\d+)\}/g, (_, alphabet: string, length: string) =>
    pick(alphabets[alphabet] ?? '', Number(length)),
  );
  return /([a-z\d])\1{3}/i.test(text) ? made(format) : text;
};

const uuid = '{h8}-{h4}-{h4}-{h4}-{h12}';
const few = 300;

/** Tokens by the vendors' documentation, which stand in a sentence. */
const tokens: readonly string[] = [
  ...['glpat-{u20}', 'glpat-{u27}.01.{s9}', 'gldt-{u20}', 'glrt-{u20}', 'glrt-t1_{u20}', 'sk-{u22}', 's.{w24}'],
  ...['dapi{h32}', 'dapi{h32}-2', 'key-{h32}', 'fc-{h32}', 'SK{h32}', 'sk_{h48}', 'sgp_{h40}', '{h32}-us21'],
  ...['re_{w8}_{w24}', 'rnd_{w32}', 'nfp_{w36}', 'vcp_{w56}', 'tskey-auth-k{w11}CNTRL-{w32}', 'phx_{w43}'],
  ...['csk-{s48}', 'lsv2_pt_{h32}_{h10}', 'AKLT{w40}', 'cio{w32}'],
  ...[`sk-lf-${uuid}`, `sdk-${uuid}`, 'sk-helicone-{s7}-{s7}-{s7}-{s7}', 'vck_{w56}', 'vci_{w56}', 'vca_{w56}'],
  ...['vcr_{w56}', 'wandb_v1_{w77}', 'llx-{w48}', 'rpa_{c43}', 'crsr_{h64}', 'hcaik_{s58}', 'hcxik_01{s24}{w32}'],
  ...['CCIPRJ_{w22}_{h40}', 'snyk_uat.{h8}.{u40}', 'phs_{w43}', 'rw_Fe26.2**{h64}*{u22}*{u200}**{h64}*{u43}'],
  ...['{w52}JQQJ99{w26}', '{w42}AzSe{w6}', '{w76}AZDO{w4}', '{b76}+ASt{b6}==', '{b76}ACDb{b6}==', '{u44}AzFu{u6}=='],
];

it.each(tokens)('masks each token of the form %s', format => {
  const seen = Array.from({ length: few }, () => made(format)).filter(token =>
    hidden(`Why is ${token} refused?`).includes(token),
  );
  expect(seen).toEqual([]);
});

/** What stands before a value, the value, and what stands behind it. */
const settings: readonly (readonly [before: string, value: string, behind: string])[] = [
  ['GITLAB_TOKEN=', 'glpat-{u20}', '\n'],
  ['[DEFAULT]\nhost = https://x\ntoken = ', 'dapi{h32}', '\n'],
  ['AZURE_OPENAI_KEY=', '{h32}', '\n'],
  ['Ocp-Apim-Subscription-Key: ', '{h32}', '\n'],
  ['-H "X-Auth-Key: ', '{h37}', '"'],
  ['RAILWAY_TOKEN=', '{w32}', '\n'],
  ["SECRET_KEY = 'django-insecure-", '{d50}', "'\n"],
  ["SECRET_KEY = '", '{d50}', "'\n"],
  ['ENV X_API_KEY ', '{b43}=', '\n'],
  ['os.environ["X_API_KEY"] = "', '{b43}=', '"'],
  ['- name: X_API_KEY\n  value: ', '{b43}=', '\n'],
  ['<apiKey>', '{b43}=', '</apiKey>'],
  ['APP_NAME=Laravel\nAPP_KEY=base64:', '{b43}=', '\nAPP_DEBUG=true\n'],
  ['curl -H "Authorization: ', '{w40}', '" https://api.example.test'],
  ["headers = {'Authorization': '", '{h40}', "'}"],
  ['headers: { Authorization: "', 'lin_{w40}', '" }'],
  ['{"auth": {"user": "me@example.org", "pass": "', 'q7{w12}', '"}}'],
  ["'password' => env('X'), 'pass' => '", 'q7{w12}', "',"],
  ['DB_PASSWORD="', 'My S3cret {w8}!', '"\n'],
  ['password: "', 'Our S3cret {w6}!', '"\n'],
  ["auth: { user: 'me', pass: '", 'abfb {l4} bcdf {l4}', "' }"],
  ['dsn := "root:', 'q7{w12}', '@tcp(127.0.0.1:3306)/db"'],
  ['{\n  "primaryKey": "', '{b43}=', '",\n  "x": 1 }'],
  ['{"secondaryKey":"', '{b86}==', '"}'],
  ['https://a.example.test/api/Hook?code=', '{u54}==', ''],
  ['https://storage.example.test/b/o?X-Goog-Expires=3600&X-Goog-Signature=', '{h512}', ''],
  ['GITHUB_PAT=', '{h40}', '\n'],
  ['AZURE_DEVOPS_EXT_PAT=', '{t52}', '\n'],
  ['DEPLOYER_PK=0x', '{h64}', '\n'],
  ['set -gx OPENAI_API_KEY ', '{w40}', '\n'],
  ['requests.get(u, auth=("admin", "', 'Xk9q7{w10}', '"))'],
  ["HTTPBasicAuth('admin', '", 'Xk9q7{w10}', "')"],
  ["define( 'AUTH_KEY',         '", '{x64}', "' );"],
  ["define('NONCE_SALT', '", '{x64}', "');"],
  ['machine api.example.test\n  login me\n  password ', 'aB3dE5.gH7jK9{w2}7', '\n'],
  ['{"env":"A=1\\nDB_PASSWORD=', 'q7{w12}', '\\nB=2"}'],
  ['ini = "[client]\\npassword = ', 'q7{w12}', '\\nuser = me\\n"'],
  ['{"files":"db:\\r\\n  password: ', 'q7{w12}', '\\r\\n"}'],
];

it.each(settings)('masks each value behind %j', (before, format, behind) => {
  const seen = Array.from({ length: few }, () => made(format)).filter(value =>
    hidden(`Some words.\n${before}${value}${behind}`).includes(value),
  );
  expect(seen).toEqual([]);
  const once = hidden(`${before}${made(format)}${behind}`);
  expect(hidden(once)).toBe(once);
});

const base64 = (text: string) => Buffer.from(text).toString('base64');
const folded = (code: string, width: number, end: string) => code.match(new RegExp(`.{1,${width}}`, 'g'))?.join(end);

const account = JSON.stringify({
  type: 'service_account',
  project_id: 'p',
  private_key: made('-----BEGIN PRIVATE KEY-----\n{b64}\n{b64}\n{b64}\n-----END PRIVATE KEY-----\n'),
});

it.each([
  ['a token', base64(made('ghp_{w36}'))],
  ['settings', base64(made('NODE_ENV=production\nDB_USER=app\nDB_PASSWORD=Xk9{w12}\n'))],
  ['a private key', base64(made('-----BEGIN PRIVATE KEY-----\n{b60}\n'))],
  ['an account of a service', base64(account)],
])('masks %s in base64, and no more of the text', (_, code) => {
  expect(hidden(`x: ${code} is.`)).toMatch(/^x: \[masked:\w+:[0-9a-f]{8}\]=* is\.$/);
  expect(hidden(`{"a":"\\n${code}\\n"}`)).toMatch(/^\{"a":"\\n\[masked:\w+:[0-9a-f]{8}\]=*\\n"\}$/);
});

it.each(['\n', '\r\n', '\n      ', '\\n', '\\r\\n'])('masks base64 that is broken into lines by %j', end => {
  const code = base64(`${account} and some more text`);
  expect(hidden(`data: |${end}${folded(code, 76, end)}${end}words`)).toMatch(
    /^data: \|[\s\\rn]+\[masked:private_key:[0-9a-f]{8}\][\s\\rn]+words$/,
  );
});

it.each([
  ['words', base64('Only some words, and no secret among them at all; 12 of them.')],
  ['bytes', Buffer.from(Array.from({ length: 90 }, (_, at) => (at * 7919 + 130) % 251)).toString('base64')],
  ['what is longer than a text of settings', base64(`password="Xk9q7Zt9Kx2B"\n`.repeat(2_200))],
])('leaves %s in base64 as they are', (_, code) => {
  expect(hidden(`x: ${code} is.`)).toBe(`x: ${code} is.`);
});

const id = '9b80df8a-9958-40ff-8ea5-bd02d524ca61';
const sha = '3dcd871ac8fa4798836b806d34c10b7ae291d99d';

it.each(
  [
    ...['idempotency_key="§"', 'partition_key: "§"', 'foreign_key: §', 'sort_key: §', 'cache-key: §', 'some_key: "§"'],
    ...['Idempotency-Key: §', 'PRIMARY_KEY=§', 'object_key = "§"', '{"primaryKey":"§"}', 'secondary_key: §'],
  ].flatMap(form => [form.replace('§', id), form.replace('§', sha)].slice(0, form.startsWith('some') ? 1 : 2)),
)('leaves what identifies, and is no secret, as it is: %s', text => expect(hidden(`${text}\n`)).toBe(`${text}\n`));

it.each([
  `cache_key: "node-modules-${sha}"`,
  `public_key = "MCowBQYDK2VwAyEA${'q7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0JsA'}="`,
  'import "./ask-by-hand-DIn1rACE.js"; import "./task-some-list-view-BfK3x9Lq.js"',
  'cioAbstractFactoryBeanProviderForTests1',
  's.currentUserProfilePicture1 s.getElementsByTagNameAndId s.shouldComponentUpdateBe',
  'sk-CircleFadeDelay-Before sk-chasing-dot-before-1a glpat-your-token-goes-in-here',
  "'Test2::Event::Pass' => '1.302103'",
  'password: "Must have 8 or more letters, 1 digit and a sign (!@#$%)"',
  '{"pass": "1つのロール値のみ使用されています"}',
  'password: "Enter your MD5 password", pass: "at least 8 characters"',
  "password: '^(?=.*[A-Za-z])(?=.*[@$!%*#?&])[A-Za-z0-9@$!%*#?&]{8,}$'",
  "password: '/login?user=%s&pass=%s&next=12#x1'",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template is what the text is
  "const secret = `sk-proj-${'a1B2'.repeat(12)}`",
  "['authorization',\n  'd41d8cd98f00b204e9800998ecf8427e.min.css.map.old.gz']",
  'token: request.headers.authorization2, password = config.dbPassword2',
  'const path = "src/Components/Button2/indexFile/TheOtherPart.css"; access_key: "src/Components/Button2/indexFile"',
  'root:%s@tcp(127.0.0.1:3306)/db user:password@tcp(db)/x',
  'C:\\new\\readme.txt, "a\\nb", "The password:\\n choose12 letters"',
  'key: "0123456789abcdef0123456789abcdef", SK0123456789abcdef0123456789abcdef',
])('leaves ordinary text as it is: %s', text => {
  expect(hidden(text)).toBe(text);
});
