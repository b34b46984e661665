/** A text with a secret in it, and the part of it that nobody may ever see. Made at run time: no scanner finds a token here. */
export interface SecretShape {
  name: string;
  text: string;
  secret: string;
}

const alphabets = {
  word: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789',
  hex: '0123456789abcdef',
  upper: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  base64: 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/',
  digits: '0123456789',
  small: 'abcdefghijklmnopqrstuvwxyz',
};

type Alphabet = keyof typeof alphabets;

let state = 20_261_123;

/** A random text that is the same in every run. */
export function code(length: number, alphabet: Alphabet = 'word'): string {
  const all = alphabets[alphabet];
  let text = '';
  while (text.length < length) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    text += all.charAt((state >>> 12) % all.length);
  }
  return text;
}

/** Prefix, kind of characters and their number, as the vendors document them. */
const tokens: readonly (readonly [prefix: string, alphabet: Alphabet, length: number])[] = (
  'sk-ant-api03- word 93|sk-ant-admin01- word 93|sk-proj- word 74|sk-svcacct- word 74|sk- word 48|sk-or-v1- hex 64|AIza word 35|ya29. word 60|GOCSPX- word 28|' +
  'xai- word 80|gsk_ word 52|pplx- word 48|hf_ word 34|r8_ word 37|nvapi- word 64|tvly- word 32|pcsk_ word 60|' +
  'ghp_ word 36|gho_ word 36|ghu_ word 36|ghs_ word 36|ghr_ word 36|github_pat_ word 82|' +
  'glpat- word 20|glptt- hex 40|gldt- word 20|glrt- word 20|glcbt- word 24|glsoat- word 20|glft- word 20|glimt- word 25|glagent- word 50|gloas- hex 64|' +
  'AKIA upper 16|ASIA upper 16|xoxb- word 40|xoxp- word 50|xapp-1- word 60|xoxe.xoxp-1- word 60|sk_live_ word 24|rk_live_ word 24|sk_test_ word 24|whsec_ word 32|' +
  'npm_ word 36|pypi-AgEIcHlwaS5vcmc word 60|rubygems_ hex 48|dckr_pat_ word 27|key- hex 32|xkeysib- hex 64|' +
  'shpat_ hex 32|shpca_ hex 32|shppa_ hex 32|shpss_ hex 32|dop_v1_ hex 64|doo_v1_ hex 64|dor_v1_ hex 64|hvs. word 90|hvb. word 138|ATATT3 word 180|ATBB word 32|' +
  'lin_api_ word 40|lin_oauth_ word 64|ntn_ word 46|secret_ word 43|figd_ word 40|dapi hex 32|glsa_ word 41|glc_ word 60|NRAK- upper 27|PMAK- hex 59|sbp_ hex 40|sb_secret_ word 31|' +
  'pscale_tkn_ word 43|pscale_pw_ word 43|dp.pt. word 43|dp.st.prd. word 43|fo1_ word 43|fm2_ base64 100|sntryu_ hex 64|sntrys_ base64 80|sq0atp- word 22|sq0csp- word 43|EAAA word 60|' +
  'HRKU- word 36|sl. word 130|tskey-auth- word 30|pul- hex 40|CCIPAT_ word 40|nfp_ word 36|re_ word 32|lsv2_pt_ word 40|AGE-SECRET-KEY-1 upper 58|SK hex 32|' +
  'vercel_blob_rw_ word 40|napi_ word 64|squ_ hex 40|sk_ hex 48|pa- word 43|dG9rOm word 54|$2b$12$ word 53|$6$ab$ word 86|{SSHA} word 38|apify_api_ word 36|e2b_ hex 40|zpka_ hex 41|tgp_v1_ word 43|fc- hex 32|cio word 32|AKID word 32|AKLT word 40'
)
  .split('|')
  .map(row => {
    const [prefix = '', alphabet = '', length = ''] = row.split(' ');
    return [prefix, alphabet as Alphabet, Number(length)] as const;
  });

/** `§` stands for a password, `¤` for a random value of 32 characters. Each line of settings is of a form that people use. */
const settings: readonly string[] = [
  '[db]\npassword = §\n',
  'password=§\n',
  'password    =    §\n',
  'db.password: §\n',
  'db:\n  password: §\n',
  'db:\n  user: app\n  password:      § # of the test system\n',
  '- password: §\n',
  'login: { user: app, password: § }\n',
  'password: |\n  §\n',
  'password: >-\n  §\n',
  'password: "§"\n',
  "password = '§'\n",
  "password = '''§'''\n",
  'password = """§"""\n',
  'var password = @"§";',
  'var password = $@"§";',
  'string dbPassword = @"§""x";',
  'password                 = "§"',
  'variable = {\n  master_password      = "§"\n}',
  '<property name="password" value="§"/>',
  '<property value="§" name="password"/>',
  '<add key="DbPassword" value="§" />',
  '<entry key="db.password">§</entry>',
  '<password>§</password>',
  '<key>Password</key>\n<string>§</string>',
  '<name>db.password</name>\n<value>§</value>',
  '<input type="password" name="p" value="§">',
  '- name: DB_PASSWORD\n  value: §\n',
  '- name: DB_PASSWORD\n  value: "§"\n',
  '{"name":"DB_PASSWORD","value":"§"}',
  '{\n  "name": "DB_PASSWORD",\n  "value": "§"\n}',
  '{"value":"§","name":"DB_PASSWORD"}',
  '{"ParameterKey":"DbPassword","ParameterValue":"§"}',
  '{\\"name\\":\\"DB_PASSWORD\\",\\"value\\":\\"§\\"}',
  "define('DB_PASSWORD', '§');",
  'os.environ.setdefault("DB_PASSWORD", "§")',
  'ENV DB_PASSWORD §\n',
  'ARG DB_PASSWORD=§\n',
  'export DB_PASSWORD=§\n',
  'set DB_PASSWORD=§\r\n',
  '$env:DB_PASSWORD = "§"',
  '$p = ConvertTo-SecureString "§" -AsPlainText -Force',
  'password: b"§"',
  'let password = String::from("§");',
  'Some(password) => password = Some("§")',
  'password = Buffer.from("§")',
  'DB_PASS=§\n',
  'requirepass §\n',
  'machine host login me password §\n',
  'machine host\n  login me\n  password §\n',
  'db.example.org:5432:shop:app:§\n',
  'mysql -u root -p§ shop',
  'mysqldump --password=§ shop',
  'tool --password § --verbose',
  'tool --db-password=§',
  '["tool", "--password", "§"]',
  'curl -u app:§ https://host/x',
  "curl --user 'app:§' https://host/x",
  'sshpass -p § ssh host',
  'docker login -u me -p § registry.example.test',
  'redis-cli -a § ping',
  'openssl rsa -passin pass:§ -in x',
  'Server=db;User Id=sa;Password=§;Encrypt=true',
  'Server=db;Uid=sa;Pwd=§',
  'Server=db;User Id=sa;Password=§$x,1;Encrypt=true',
  'host=db user=app password=§ dbname=shop',
  'postgres://app:§@db/shop',
  'postgres://app:§@x@db/shop',
  'postgres://app:a/§@db:5432/shop',
  'amqp://app:§%40x@mq/',
  'jdbc:oracle:thin:app/§@db:1521:x',
  'password=&quot;§&quot;',
  '&lt;password&gt;§&lt;/password&gt;',
  'password%3D§%26x=1',
  'password%3D%22§%22',
  '{"a":"password\\u003d§"}',
  'value: p\\u0061ssword="§"',
  "CREATE USER app IDENTIFIED BY '§';",
  "ALTER ROLE app WITH PASSWORD '§';",
  'IDENTIFIED BY "§"',
  '  12│   password: §\n',
  'conf/app.yml:12:  password: §\n',
  '-  password: §\n',
  '> password: §\n',
  'kind: Secret\nmetadata:\n  name: x\nstringData:\n  anything: §\n',
  '{"kind":"Secret","stringData":{"anything":"§"}}',
  '_password=§\n',
  'https://¤@github.com/x/y.git',
  'https://¤:x-oauth-basic@github.com/x/y.git',
  'registry=https://r/\n//r/:_authToken=¤\n',
  '//r/:_auth=¤\n',
  'npmAuthToken: "¤"\n',
  'AccountName=x;AccountKey=¤¤==;EndpointSuffix=y',
  'Authorization: Bearer ¤',
  'Authorization: token ¤',
  "-H 'X-Api-Key: ¤'",
  "-H 'PRIVATE-TOKEN: ¤'",
  'Cookie: theme=dark; session=¤; lang=de',
  'Set-Cookie: connect.sid=¤; HttpOnly',
  'api_token: ¤\n',
  'secret_key = ¤\n',
  'SECRET_KEY_BASE=¤\n',
  '"client_secret": "¤"',
  'https://host/x?access_token=¤&y=1',
  'https://hooks.slack.com/services/T0/B0/¤',
  'client-key-data: ¤¤\n',
  '"identitytoken": "¤"',
  'Here is DD_API_KEY: ¤ and more',
  'The line aws_session_token=¤¤ of the log',
  'Authorization: SSWS ¤',
  '"algoliaAdminKey": "¤"',
  'ngrok config add-authtoken ¤',
  'new Client("¤")',
  'variable "db_password" {\n  type    = string\n  default = "§"\n}',
  'The password is §.',
  'login with password § failed',
  'password "§"\n',
  'psk="§"\n',
  'pass = §\n',
  'public string Password { get; set; } = "§";',
];

/** `§` stands for a UUID. */
const identified: readonly string[] = [
  'codecov:\n  token: §\n',
  'SNYK_TOKEN=§',
  'X-Postmark-Server-Token: §',
  'HEROKU_API_KEY=§, then',
  'access-production-§',
];

/** `§` stands for a word of small letters. */
const worded: readonly string[] = [
  'POSTGRES_PASSWORD=§\n',
  '    POSTGRES_PASSWORD: §\n',
  'db:\n  user: me\n  password: §\n',
  '[db]\npassword = §\nhost = db\n',
  'spring.datasource.password=§\n',
  'Server=db;User Id=sa;Password=§;Encrypt=true',
  '{"name":"DB_PASSWORD","value":"§"}',
];

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** 13 lines of the middle of a private key. */
export const keyLines = Array.from({ length: 13 }, () => code(64, 'base64'));

const begun = state;

const marked: readonly (readonly [string, (line: string, number: number) => string])[] = [
  ['bare', line => line],
  ['added', line => `+${line}`],
  ['removed', line => `-${line}`],
  ['of a hunk', line => ` ${line}`],
  ['numbered', (line, number) => `${number}:${line}`],
  ['found', (line, number) => `certs/key.pem:${number}:${line}`],
  ['around what was found', (line, number) => `certs/key.pem-${number}-${line}`],
  ['shown by the agent', (line, number) => `${String(number).padStart(4)}│ ${line}`],
  ['quoted', line => `> ${line}`],
  ['indented', line => `      ${line}`],
  ['strings', line => `  "${line}\\n" +`],
];

function shapesOfKeys(): SecretShape[] {
  return [
    ...marked.map(([name, mark]) => {
      const lines = Array.from({ length: 13 }, () => code(64, 'base64'));
      return {
        name: `key lines, ${name}`,
        text: lines.map((line, at) => mark(line, at + 3)).join('\n'),
        secret: lines,
      };
    }),
    ...[70, 76].map(width => {
      const lines = Array.from({ length: 6 }, () => code(width, 'base64'));
      return { name: `key lines of ${width}`, text: lines.join('\n'), secret: lines };
    }),
    (() => {
      const lines = Array.from({ length: 4 }, () => code(64, 'base64'));
      return { name: 'key lines, escaped', text: `x\\n${lines.join('\\n')}\\ny`, secret: lines };
    })(),
  ].map(({ secret, ...shape }) => ({ ...shape, secret: secret[2] ?? '' }));
}

/** Every shape, each with a secret of its own. */
export function secretShapes(): SecretShape[] {
  // The same whichever test of this process asked before.
  state = begun;
  const password = () => `Zq${code(5)}7${code(4)}x9`;
  const pair = `app:${password()}`;
  const entry = password();
  return [
    ...tokens.map(([prefix, alphabet, length]) => {
      const secret = code(length, alphabet);
      return { name: prefix, text: `key: ${prefix}${secret} is used.`, secret };
    }),
    ...settings.map(form => {
      const secret = form.includes('§') ? password() : code(32);
      return { name: form, text: form.replaceAll('§', secret).replaceAll('¤', secret), secret };
    }),
    ...shapesOfKeys(),
    ...identified.map(form => {
      const secret = [8, 4, 4, 4, 12].map(length => code(length, 'hex')).join('-');
      return { name: form, text: form.replace('§', secret), secret };
    }),
    ...worded.map(form => {
      const secret = code(12, 'small');
      return { name: form, text: form.replace('§', secret), secret };
    }),
    ...['86421357', 'xK9$mQ2#vL'].map(secret => ({ name: secret, text: `db:\n  password: ${secret}\n`, secret })),
    { name: 'docker auth', text: `{"auths":{"r":{"auth":"${base64(pair)}"}}}`, secret: base64(pair) },
    { name: 'basic', text: `Basic ${base64(`me:${entry}`)}`, secret: base64(`me:${entry}`) },
    { name: 'k8s data', text: `kind: Secret\ndata:\n  anything: ${base64(entry)}\n`, secret: base64(entry) },
    (() => {
      const parts = [code(20), code(60), code(43)];
      return { name: 'jwt', text: `eyJ${parts[0]}.eyJ${parts[1]}.${parts[2]}`, secret: parts[1] ?? '' };
    })(),
  ];
}
