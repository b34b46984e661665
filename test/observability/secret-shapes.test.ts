import { expect, it } from 'vitest';
import { createMask } from '../../src/observability/secret-masking.ts';
import {
  base64Runs,
  changeRate,
  isMixedCase,
  joinSpans,
  looksMixed,
  looksRandom,
} from '../../src/observability/secret-tokens.ts';
import { secretShapes } from '../support/secret-shapes.ts';

const mask = createMask({ secret: 'pepper', keys: [] });

it('masks every shape of a secret, alone and between other words', () => {
  const seen = secretShapes().flatMap(({ name, text, secret }) =>
    [text, `Some words.\n\n${text}\n\nMore words.\n`]
      .filter(each => mask.maskSync(each, 'thread').text.includes(secret))
      .map(() => name),
  );
  expect(seen).toEqual([]);
});

it('makes one of finds that share characters: of all of them, and of the surest kind', () => {
  const span = (start: number, end: number, kind: string, rank: number) => ({ start, end, kind, rank });
  const joined = joinSpans([
    ...[span(8, 20, 'c', 2), span(0, 10, 'a', 3), span(5, 12, 'b', 1), span(19, 22, 'd', 2)],
    ...[span(22, 30, 'e', 3), span(24, 26, 'f', 3)],
  ]);
  expect(joined.map(({ start, end, kind }) => [start, end, kind])).toEqual([
    [0, 22, 'b'],
    [22, 30, 'e'],
  ]);
});

it.each([
  ['anthropic_key', 'sk-ant-api03-'],
  ['google_token', 'ya29.'],
  ['pypi_token', 'pypi-AgEIcHlwaS5vcmc'],
  ['mail_key', 'xkeysib-'],
  ['databricks_token', 'dapi'],
  ['vault_token', 'hvs.'],
  ['service_token', 'dp.pt.'],
  ['service_token', 'rubygems_'],
  ['shopify_token', 'shpat_'],
  ['atlassian_token', 'ATATT3'],
  ['notion_token', 'secret_'],
  ['newrelic_key', 'NRAK-'],
  ['age_key', 'AGE-SECRET-KEY-1'],
  ['twilio_key', 'SK'],
])('names the kind %s of what begins with %s', (kind, prefix) => {
  const shape = secretShapes().find(({ name }) => name === prefix);
  expect(mask.maskSync(shape?.text ?? '', 'thread').found).toEqual({ [kind]: 1 });
});

it.each(['password', 'Password', 'PASSWORD'])('names a random value behind %s a secret', name => {
  expect(mask.maskSync(`${name}: ${w(24)}\n`, 'thread').found).toEqual({ secret: 1 });
});

it.each([
  'key: sk-learn-preprocessing-standard-scaler is used.',
  'AKIA0000000000000000',
  'class="pat-container-with-many-words-and-no-digits"',
  'Bearer AuthenticationScheme',
  'password: $DB_PASSWORD',
  'https://user:$PASSWORD@host/path',
  'https://localhost:8080/a@b.example',
  'const token = request.headers.authorization',
  'd41d8cd98f00b204e9800998ecf8427e.min.css.map.old.gz',
  'token: process.env.SOME_SERVICE_TOKEN',
  'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
])('leaves %s as it is', text => {
  expect(mask.maskSync(text, 'thread').text).toBe(text);
});

const w = (length: number) => 'q7Zt9Kx2Bv4Lm8Np1Rw5Yc3Hd6Fg0JsAeUiOoTzXbVnMkLpQ'.repeat(3).slice(0, length);
const h = (length: number) => '0f1e2d3c4b5a69788796a5b4c3d2e1f0'.repeat(4).slice(0, length);
const b64 = (text: string) => Buffer.from(text).toString('base64');
const pemOf = (kind: string) => b64(`-----BEGIN ${kind}-----\n${w(60)}\n`);
const spaced = 'words '.repeat(50);

/** 38 characters with two changes. */
const lower = 'abcdefghijklmnopqrstuvwxyz23zyxwvutsrq';

/** Sixteen characters, of eight kinds each as often: three bits a character. */
const eight = 'a1b2c3d4a1b2c3d4';

it.each<[string, (text: string) => boolean, string, string]>([
  ['16 characters', looksRandom, 'a1B2c3D4e5F6g7H8', 'a1B2c3D4e5F6g7H'],
  ['4 letters', looksRandom, 'a1b2c3d456789012', 'a1b2c34567890123'],
  ['2 digits', looksRandom, 'getTheNewName12a', 'getTheNewName1ab'],
  ['letters that make no words', looksRandom, 'aBcDeFgHiJkLmNoP', 'getTheNewNamesOf'],
  ['words for less than seven tenths', looksRandom, 'TheNewBcDfGtheXY', 'TheNewTheGtheXYz'],
  [
    '32 digits of hexadecimal numbers',
    looksRandom,
    '0000aaaa1111bbbb2222cccc3333dddd',
    '0000aaaa1111bbbb2222cccc3333ddd',
  ],
  ['8 different ones', looksRandom, '0000aaaa1111bbbb2222cccc3333dddd', '0000aaaa1111bbbb2222cccc3333cccc'],
  ['40 small letters and digits', looksRandom, `${lower}45`, `${lower}4`],
  ['3 bits a character', looksRandom, eight, 'a1b2c3d4a1b2c3d1'],
  ['3 changes in ten', looksRandom, 'abcd12efgh34ijkl56mno', 'abcd12efgh34ijkl56mnop'],
  ['what begins so', looksRandom, w(40), `${'a'.repeat(512)}${w(120).repeat(9)}`],
  ['no UUID', looksRandom, '0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f', '0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0'],
  ['16 mixed characters', looksMixed, 'aBcDeFgHiJkLmNoP', 'aBcDeFgHiJkLmNo'],
  ['3 bits a mixed character', looksMixed, eight, 'a1b2c3d4a1b2c3d1'],
  ['a quarter of changes', looksMixed, 'abcdEfghIjklmnopq', 'abcdEfghIjklmnopqr'],
  ['letters of both kinds and digits', isMixedCase, 'aA1', 'aA'],
  ['capitals', isMixedCase, 'aA1', 'a1'],
  ['small letters', isMixedCase, 'aA1', 'A1'],
])('tells what a machine chose by %s', (_, judge, chosen, other) => {
  expect([judge(chosen), judge(other)]).toEqual([true, false]);
});

it.each(['a0', 'a9', 'aA', 'aZ', 'A0', 'Z9'])('counts the change in %s', text => {
  expect([changeRate(text), changeRate(text + text.at(-1))]).toEqual([1, 0.5]);
});

it.each<[string, string, [number, number][]]>([
  ['40 characters', w(40), [[0, 40]]],
  ['40 behind 39 others', `${' '.repeat(39)}${w(40)}`, [[39, 79]]],
  ['39 characters', `${w(39)} ${w(39)} `, []],
  ['39 behind others', `${' '.repeat(10)}${w(39)} `, []],
  ['130 characters that are filled up', `${w(130)}== and`, [[0, 132]]],
  ['letters of one kind', `${'a1'.repeat(30)} ${w(20)}`, []],
])('finds the stretches of base64 in %s', (_, text, runs) => {
  expect(base64Runs(text).map(({ start, end }) => [start, end])).toEqual(runs);
});

/** What is masked stands as `«kind:secret»`, and nothing else is. */
const forms: readonly string[] = [
  // Formats.
  `«google_token:1//0${w(40)}»`,
  `«perplexity_key:pplx-${w(40)}»`,
  `«model_key:r8_${w(37)}» «aws_access_key:ABSK${w(60)}» «stripe_key:whsec_${w(32)}» «sendgrid_key:SG.${w(22)}.${w(43)}»`,
  `«grafana_token:eyJrIjoi${w(70)}» «service_token:dop_v1_${h(64)}» «service_token:sk_${h(48)}» «service_token:rnd_${w(32)}»`,
  `«password_hash:$2b$12$${w(53)}» «service_token:EAAA${w(60)}» «service_token:LTAI${w(20)}» «airtable_token:pat${w(14)}.${h(64)}»`,
  `«azure_secret:abc8Q~${w(34)}» «mail_key:${h(32)}-us12» «service_token:1/1234567890123456:${h(32)}» «newrelic_key:${h(36)}FFNRAL»`,
  ` «vault_token:s.${w(24)}» «telegram_token:123456789:AA${w(33)}» «jwt:eyJ${w(20)}.eyJ${w(20)}.${w(10)}»`,
  `«service_token:pat.${w(22)}.${h(24)}.${w(20)}» «service_token:dG9rOm${w(40)}» «service_token:prod:app-name-12|${w(40)}»`,
  `«discord_token:M${w(23)}.${w(6)}.${w(27)}» «vault_token:hvs.abcdefghijklmnopqrst1» «vault_token:hvs.aBcDeFgHiJkLmNoPqRsT»`,
  `LTAI${'a'.repeat(20)} pat${w(14)} 1//0${'a'.repeat(38)} SK${'0'.repeat(32)}`,
  `«aws_session_token:IQoJb3JpZ2lu${w(60)}» «service_token:access_token$production$q7zt9kx2bv4lm8np$${h(32)}» «service_token:sl.${w(60)}»`,
  '«aws_access_key:AKIAABCDEFABCDEFABCD» AKIAABCDEABCDEABCDEA',
  `«github_token:ghp_${w(36)}» ${w(40)}`,
  `«aws_access_key:AKIAQ3EGTHZK4V2MPL7X» ${spaced} ${w(40)}`,
  `x«github_token:ghp_${'abcdefgh1'.repeat(4)}» abc«google_key:AIza${'a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r'}»`,
  // The public half of an AWS key, and what looks like its other half.
  `«aws_access_key:AKIAQ3EGTHZK4V2MPL7X» «aws_secret_key:${w(40)}» ${'a1'.repeat(20)} ${'A1'.repeat(20)} ${'aA'.repeat(20)}`,
  // In the middle of a word: where the prefix is short or has no sign, only before what is mixed.
  `x«github_token:ghp_${w(36)}» \\n«github_token:ghp_${w(36)}» %3D«google_key:AIza${w(35)}» abc«google_key:AIza${w(35)}»`,
  `${w(28)}AIza${w(35)} xghp_${'a'.repeat(36)} xre_${w(24).toLowerCase()}`,
  `sk-${'a'.repeat(20)}-${w(20)}`.replace(/.*/, '«api_key:$&»'),
  `${h(32)}.${'abcd'.repeat(4)} ${h(32)}.${'ABCD'.repeat(4)} «zhipu_key:${h(32)}.${'aBcD'.repeat(4)}»`,
  // Finds that touch are two; finds that share characters are one of the surest kind.
  `password="x-«»`.replace(/.*/, `password="«github_token:x-ghp_${w(36)}&key=${w(24)}»"`),
  // Headers.
  'Bearer «bearer_token:abcdefghijklmno1» Bearer abcdefghijklmn1 Bearer «bearer_token:AbCdEfGhIjKlMnOp» Bearer AbCdEfGhIjKlMnO',
  'Bearer «bearer_token:abcDefgHijkLmnopqrstu» Bearer abcDefgHijklmnopqrstu',
  'Authorization: Custom «authorization:YWJjZGVmZ2g=» Authorization: Custom YWJjZGVmZ2g',
  `{"auth": "«authorization:${b64('me:secret-word')}»"} {"auth": "${b64('no pair at all')}"}`,
  `thin:app/«url_password:hunter22»@db session=«session:${w(24)}»; client-key-data: «private_key:${w(50)}»`,
  `{"kty":"EC","crv":"P-256","x":"${w(43)}","d":"«private_key:${w(43)}»"} {\\"kty\\": \\"oct\\", \\"k\\": \\"«private_key:${w(43)}»\\"}`,
  `{"kty":"oct","alg":"A128KW","k":"«private_key:${w(22)}»"} {"alg":"A128GCM","k":"«private_key:${w(22)}»","key_ops":["encrypt"],"kty":"oct"}`,
  `{\\"k\\": \\"«private_key:${w(22)}»\\", \\"kty\\": \\"oct\\"} {"k":"${w(22)}"} {"kty":"oct"} {"k":"${w(22)}","octet":1}`,
  `https://«url_password:${w(24)}»@host https://${'a'.repeat(24)}@host`,
  `«private_key:${pemOf('PRIVATE KEY').replace(/=+$/, '')}» ${pemOf('CERTIFICATE')}`,
  `«private_key:${b64(`-----BEGIN CERTIFICATE-----\n${w(90)}\n-----BEGIN PRIVATE KEY-----\n${w(45)}`)}» then`,
  `_password=«npm_token:hunter22» _auth=process.env.AUTH1 _auth=lettersonly npmAuthToken: "«npm_token:lettersonly»"`,
  `authtoken «api_key:${w(32)}» client("«api_key:${w(32)}»") AccountKey=«azure_key:${w(50)}==» hooks.slack.com/services/«webhook:T0/B0/${w(24)}»`,
  `DD_API_KEY: «secret:${w(24)}» then`,
  `MY_KEY=«secret:${w(40)}» then`,
  'tool -token «password:hunter22» -x',
  `\\n«api_key:sk-${h(32)}»`,
  `X-Api-Key: «api_key:${w(32)}» Authorization: SSWS «authorization:${w(24)}»`,
  'db.host:5432:shop:app:«password:hunter22»',
  'tool -pass «password:hunter22» -x',
  'sshpass -p «password:hunter22» ssh host',
  'openssl rsa -passin pass:«password:hunter22»',
  'ConvertTo-SecureString "«password:hunter22»" -AsPlainText',
  'requirepass «password:ab12»\n',
  'password = "«password:Sommer!»", password: "Sommer!"',
  'var password = @"«password:horse""battery»";',
  'db:\n  password: abc12=\n',
  // Values behind names, by what they look like and where they stand.
  '{"name":"DB_PASSWORD","value":"«password:hunterab»"} {"name":"DB_PASSWORD","value":"string"} {"name":"API_TOKEN","value":"hunterab"}',
  '{"value":"«password:ab1234»","name":"DB_PASSWORD"}',
  'password: choose12 letters or more',
  '\npassword: choose12 letters or more',
  'Enter a password: choose12',
  'var password = @"«password:horse battery»";',
  'Server=db;Password=«password:p@ss word!»;Encrypt=true Server=db;Pwd=«password:ab12»;Encrypt=true',
  'password "«password:hunter22»"\n',
  `${'x'.repeat(59)}.password=«password:hunterab»\n`,
  `${'x'.repeat(60)}.password=hunterab\n`,
  'He typed the password "hunter22" twice',
  'password "hunter22" was typed',
  'variable "db_password" {\n  default = "«password:hunterab»"\n}',
  'tool --password hunterab',
  'curl -u me:«password:ab12» https://host',
  'password = "12345", password = "密码密码密码"',
  'api_key: "«secret:k3y4nob8»" api_key: "k3y4nob"',
  'password: "hunterab", password = "Hunter", password := "«password:hunterab»", password = "passwords"',
  'db:\n  password: «password:abcd@efg»\n',
  'db:\n  password: abc@efg\n  secret: abcdef@ghijk\n',
  'DB_PASSWORD=«password:hunterab»\nPOSTGRES_PASSWORD=string\nAPI_TOKEN=hunterab\n',
  'password=hunterab\n',
  'spring.datasource.password: hunterab\nspring.datasource.password=«password:hunterab»\n',
  '+DB_PASSWORD=«password:hunter22» psql -h db',
  // What stands around them is looked for near them, in a long text too.
  `user: me\npassword=«password:hunterab»\n${spaced}`,
  `He typed the password "hunter22"\n${spaced}`,
  // Secrets of a cluster: in their own document, up to its end.
  `kind: ConfigMap\ndata:\n  a: letters\n---\nkind: Secret\nstringData:\n  first: «secret:letters»\n  second: «secret:more-letters»\n---\ndata:\n  a: letters\n`,
  `stringData:\n  first: «secret:letters»\nkind: Secret\n`,
  `${spaced}\n---\nstringData:\n  first: «secret:letters»\n  second: «secret:other»\nkind: Secret\n`,
  'kind: Secret\nstringData:\n  first: [masked:secret:0a1b2c3d]\n',
  // What is read otherwise than it stands.
  'password%3D«password:hunter22»',
  '%70%61%73%73%77%6f%72%64%3d«password:%68unter22»',
  'p%61ssw%6frd%3d«password:hunter22»',
  'the pasx\bsword="«password:hunter22»"',
  '\bpassword%3D«password:hunter22»',
  'password%3D«password:hunter22» then %41',
  `token%3D«secret:${w(24)}»`,
  `${spaced.repeat(4)}password%3D«password:hunter22» ${spaced}`,
  `password="\x1b]0;${'title '.repeat(200)}\x07«password:hunter22»"`,
];

function partsOf(marked: string): { text: string; found: string[] } {
  const found = [...marked.matchAll(/«(\w+:[^»]+)»/g)].map(([, part = '']) => part);
  return { text: marked.replace(/«\w+:([^»]+)»/g, '$1'), found };
}

const findsOf = (text: string) =>
  (mask.maskSync(text, 'thread').places ?? []).map(({ start, end, kind }) => `${kind}:${text.slice(start, end)}`);

it.each(forms)('masks what is marked, and no more: %s', marked => {
  const { text, found } = partsOf(marked);
  expect(findsOf(text)).toEqual(found);
});

const rows = (count: number, width: number) =>
  Array.from({ length: count }, (_, at) => `${w(150).slice(at % 40)}${w(150)}`.slice(0, width));
const block = (count: number, width: number) => rows(count, width).join('\n');
const begin = '-----BEGIN PRIVATE KEY-----';
const end = '-----END PRIVATE KEY-----';
const der = (...head: number[]) =>
  Buffer.concat([Buffer.from(head), Buffer.from(w(90)).map(byte => byte * 3)])
    .toString('base64')
    .slice(0, 64);
const printable = (count: number) =>
  Buffer.from([...w(count)].map(each => each.charCodeAt(0)).concat(Array(60 - count).fill(200)));

/** The same with what is masked as the body of a private key between `«` and `»`. */
const bodies: readonly [string, string][] = [
  ['headers and no end', `${begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,01\n\n«${block(2, 40)}»`],
  ['a first line of 24 letters', `${begin}\n«AbCdEfGhIjKlMnOpQrStUvWx\n${block(1, 40)}»`],
  ['a first line of 23 letters', `${begin}\nAbCdEfGhIjKlMnOpQrStUvW\n${block(1, 40)}`],
  ['12 characters', `${begin}\n«Ab3dEf7hIj1L»`],
  ['11 characters', `${begin}\nAb3dEf7hIj1`],
  ['letters at the end of the text', `${begin}\n«${block(1, 40)}\nAbCd»`],
  ['letters before the end mark', `${begin}\n«${block(1, 40)}\nAbCd»\n${end}`],
  ['letters before a sentence', `${begin}\n«${block(1, 40)}»\nAbCd goes on`],
  ['an end that is filled up', `${begin}\n«${block(1, 40)}\nAbCd=»\nand so on`],
  ['an end with a digit', `${begin}\n«${block(1, 40)}\nAbC3»\nand so on`],
  ['no beginning, and 24 letters', `so on:\n«AbCdEfGhIjKlMnOpQrStUvWx»\n${end}`],
  ['no beginning, and 23 letters', `so on:\nAbCdEfGhIjKlMnOpQrStUvW\n${end}`],
  ['no beginning, and a last line of letters', `Some words here\n«${block(2, 40)}\nAbCd»\n${end}`],
  ['no beginning, and a code before it', `abc123\n«${block(2, 40)}»\n${end}`],
  ['no beginning, behind another', `${begin}\n«${block(2, 40)}»\n${end}\nwords.\n«${block(2, 44)}»\n${end}`],
  ['lines of 48', `«${block(9, 48)}»\nend.`],
  ['a line of 64', `«${block(1, 64)}»`],
  ['a line of 63', block(1, 63)],
  ['lines of 50 and 52', `${block(1, 50)}\n${block(1, 52)}`],
  ['lines with an empty one between', `«${rows(4, 64).join('\n\n')}»\n`],
  ['two lines of 50 with one between', `«${rows(2, 50).join('\n\n')}»`],
  ['two lines of 50 with two between', rows(2, 50).join('\n\n\n')],
  ['two lines of 50 that are 330 apart', `«${rows(2, 50).join(`${' '.repeat(329)}\n`)}»`],
  ['two lines of 50 that are 331 apart', rows(2, 50).join(`${' '.repeat(330)}\n`)],
  ['a plus in quotes', `"+${block(1, 64)}"`],
  ['lines behind words', `${spaced.repeat(2)}\n«${block(3, 64)}»\n`],
  ['a certificate far behind it', `«${block(3, 64)}»\n\n${spaced.repeat(2)}\n-----BEGIN CERTIFICATE-----\n${spaced}`],
  ['two lines of 50', `«${block(2, 50)}»`],
  ['added lines', `+«${rows(3, 64).join('\n+')}»\nend.`],
  [
    'lines that begin with a plus',
    `«${rows(3, 64)
      .map(row => `+${row.slice(1)}`)
      .join('\n')}»`,
  ],
  [
    'lines with something behind',
    rows(3, 64)
      .map(row => `${row} = foo`)
      .join('\n'),
  ],
  [
    'lines with something before',
    rows(3, 64)
      .map(row => `sum of a is ${row}`)
      .concat(spaced, spaced)
      .join('\n'),
  ],
  ['260 lines', `«${block(260, 64)}»`],
  ['261 lines', block(261, 64)],
  ['a certificate', `-----BEGIN CERTIFICATE-----\n${block(3, 64)}\n${spaced.repeat(4)}`],
  ['the end of a certificate', `${block(3, 64)}\n-----END CERTIFICATE-----`],
  ['the end of a certificate behind words', `${spaced}\n${block(3, 64)}\n-----END CERTIFICATE-----`],
  ['a key of another form', `---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n«${block(3, 64)}»\n`],
  ['a picture', `iVBORw0KGgo${w(53)}\n${block(3, 64)}`],
  ['a certificate without its marks', `${der(48, 130, 3, 4, 48)}\n${block(3, 64)}`],
  ['a public key without its marks', `${der(48, 89, 48, 19, 6)}\n${block(1, 64)}`],
  ['the key of a curve without its marks', `«${der(48, 119, 2, 1, 1, 4, 32)}\n${block(1, 64)}»`],
  ['a long sequence without its marks', `«${der(48, 119, 48, 32, 1)}\n${block(1, 64)}»`],
  ['lines that are not random', `${`Aa1${'a'.repeat(61)}\n`.repeat(3)}`],
  ['one line that is not random', `«${block(2, 64)}\nAa1${'a'.repeat(61)}»\n`],
  ['coded words', `${b64(w(60))}\n${b64(w(60))}`],
  ['words for nine tenths', `«${printable(54).toString('base64')}\n${printable(54).toString('base64')}»`],
  ['words for more', `${printable(55).toString('base64')}\n${printable(55).toString('base64')}`],
  ['a last line that is filled up', `«${block(2, 64)}\nabcd=»\n`],
  ['a last line of 8', `«${block(2, 64)}\nAb3dEf7h»\n`],
  ['a last line of 7', `«${block(2, 64)}»\nAb3dEf7\n`],
  ['a word behind', `«${block(2, 64)}»\nabcdefgh\n`],
  ['a line that is filled up', `«${block(1, 64)}\n${w(62)}==»\n`],
  ['a line of 131', block(1, 131)],
  ['lines of 130', `«${block(2, 130)}»`],
  ['lines of 47', block(3, 47)],
];

it.each(bodies)('masks of a private key what is marked: %s', (_, marked) => {
  const found = [...marked.matchAll(/«([^»]+)»/g)].map(([, part = '']) => `private_key:${part}`);
  expect(findsOf(marked.replace(/[«»]/g, ''))).toEqual(found);
});
