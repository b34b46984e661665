import {
  changeRate,
  createFinder,
  createScan,
  decoded,
  hasLetterAndDigit,
  isWorded,
  looksRandom,
  matchesOf,
  type Span,
  uuid,
} from './secret-tokens.ts';

/** Also within JSON that is a text of JSON. */
const quote = '\\\\{0,3}["\'`]';

/** What a language wants before a text: `@"`, `b'`, `N'`, `r#"`, or a call that takes it over, as in `Some("`. */
const wrapper = '(?:(?:new )?[A-Za-z_[\\]][\\w.:[\\]]{0,30}\\(\\s{0,2})?[@$A-Za-z8]{0,3}#?';

/** What names a secret in code, in settings and in JSON; it is found from the last of its words. */
const name =
  '(?:(?<=(?:api|access|secret|private|auth|client|account|signing|encryption|master|service|refresh|session|id|admin|write|app|application|project|server|deploy|license|storage|sas|shared|webhook|hmac|jwt)[_-]?)key|token|secret|passwo?r?d|passphrase|pwd|credential)';

const keyWords = 'key|token|secret|pass|pwd|credential';

/** Secrets that are known by what stands around them. Every quantifier is bounded, or ends where nothing has to follow. */
// biome-ignore format: a table has a row for each context
export const findContexts = createFinder([
  ['bearer_token', 'bearer', /\b(?:[Bb]earer|BEARER)(?:[ \t]|%20){1,4}([\w.~+/-]{12,}={0,2})/, isCode],
  ['authorization', 'authorization', /\bauthorization\\{0,3}["']?\s{0,3}[:=,]\s{0,3}\\{0,3}["']?[a-z][\w-]{1,20}\s{1,3}([\w.~+/-]{8,}={0,2})/i, value => isCode(value) || value.endsWith('=')],
  // The user and the password of a registry, of a repository or of a header.
  ['authorization', 'basic|auth', /\b(?:[Bb]asic(?:[ \t]|%20){1,4}|auth\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?)([A-Za-z0-9+/]{8,}={0,2})/, value => /^[!-~]{1,128}:[!-~]{2,}$/.test(decoded(value))],
  ['api_key', 'api-key|auth-token|access-token|private-token|authorization', /\b(?:api-key|auth-token|access-token|private-token|authorization)\\{0,3}["']?\s{0,3}[:=,][ \t]{0,3}\\{0,3}["']?([\w.+/-]{16,}={0,2})/i, looksRandom],
  // A path into which an address was made has one slash less. Neither a template nor a placeholder, nor a port with a path or a query that has an `@` in it.
  ['url_password', ':/', /(?::\/|(?<=[A-Za-z]{2}):)\/[^\s/:@"'`<>\\]{0,128}:([^\s"'`<>\\]{1,256})(?=@[\w.[])/, value => !/^(?:[$%{*]|\[masked:|\d{1,5}[/?#,]|(?:password|redacted)$)|^\/|:\/\/|[()|^]/i.test(value)],
  ['url_password', '@tcp(|@unix(', /(?<=:(?<before>(?![$%{*<]|(?:password|redacted)@)[^\s:@"'`\\\]]{1,128}))(?=@(?:tcp|unix)\()/],
  // A token in the place of the user: alone, or with a word for the password.
  ['url_password', '://', /:\/\/([^\s/:@"'`<>\\?#]{16,256})(?=(?::[^\s/@"'`<>\\]{0,40})?@)/, value => isCode(value) && !/^(?:[$%{*]|\[masked:)|\.\w/.test(value)],
  ['url_password', 'thin:', /thin:[^\s/"'`@]{1,64}\/([^\s"'`@]{4,128})(?=@)/],
  ['session', 'sess|sid=|remember_token|csrf|auth=|jwt=', /(?:sess(?:ion)?(?:_?id)?|(?<![A-Za-z])sid|remember_token|csrf-?token|\bauth|\bjwt)=([^\s;,"'`<>\\&]{16,})/i, looksRandom],
  ['private_key', 'client-key-data', /client-key-data\\{0,3}["']?:\s{0,4}["']?([A-Za-z0-9+/]{40,}={0,2})/],
  // The private numbers of a JSON Web Key, and the value of a symmetric one.
  ['private_key', '"d"|"p"|"q"|"dp"|"dq"|"qi"|"k"|"d\\|"p\\|"q\\|"dp\\|"dq\\|"qi\\|"k\\', /"(?:[dpqk]|d[pq]|qi)\\{0,3}"\s{0,4}:\s{0,4}\\{0,3}"([\w-]{40,1400})(?=\\{0,3}")/, looksRandom],
  // A short one, where its members tell what it is.
  ['private_key', '"k"|"k\\', /"k\\{0,3}"\s{0,4}:\s{0,4}\\{0,3}"(?:(?<=\boct\\{0,3}"[^{}]{0,200})|(?=[^{}]{0,240}\boct\\{0,3}"))([\w-]{20,39})(?=\\{0,3}")/, looksRandom],
  ['npm_token', '_auth|_password', /(?<![A-Za-z0-9])_(?:auth|authToken|password)["']?\s{0,4}[:=]\s{0,4}["']?([^\s"'`<>{}$]{6,})/, value => !/^(?:process|\[masked:)|[()]/.test(value) && hasLetterAndDigit(value)],
  ['npm_token', 'npmAuth', /npmAuth(?:Token|Ident)["']?:\s{0,4}["']?([^\s"'`<>{}$]{6,})/],
  ['url_secret', '?api|?key|?access|?token|?auth|?sig|?client_secret|?password|?x-amz|?x-goog|?code|&api|&key|&access|&token|&auth|&sig|&client_secret|&password|&x-amz|&x-goog|&code', /[?&](?:api[_-]?key|key|access[_-]?token|token|auth|sig|signature|client_secret|password|x-(?:amz|goog)-signature|x-amz-security-token|code(?==[\w+/%-]{40}))=([^&\s"'`<>#\\]{16,})/i, looksRandom],
  ['api_key', 'authtoken|client(|api(', /(?:authtoken["']?[ \t:=]{1,4}["']?|(?:client|api)\(\s{0,9}["'](?=[\w-]{32,128}["']))([\w-]{32,128})/i, looksRandom],
  ['aws_secret_key', 'secret', /secret_?access_?key\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?([A-Za-z0-9/+]{40})(?![\w/+=])/i],
  ['azure_key', 'account|shared|primary|secondary', /(?:account|sharedAccess|primary|secondary)_?key\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?([A-Za-z0-9+/]{40,}={0,2})/i, value => /[A-Z]/.test(value) && looksRandom(value)],
  ['webhook', 'hooks.slack|discord|outlook|webhook.office', /(?:\bhooks\.slack\.com\/(?:services|workflows|triggers)|\bdiscord(?:app)?\.com\/api\/webhooks|\boutlook\.office\.com\/webhook|(?<=\.)webhook\.office\.com\/webhookb2)\/([\w/@-]{20,})/],
  // Random values behind what names a secret and a sign.
  ['secret', keyWords, new RegExp(`${name}(?:${quote})?\\s{0,40}(?:=>|:=|[:=])\\s{0,40}${wrapper}${quote}([^"'\`\\s\\\\{}<>()$[\\]]{16,512})(?=\\\\{0,3}["'\`])`, 'i'), looksIssued],
  ['secret', keyWords, /(?:(?<=[_-])(?:TOKEN|[Tt]oken|SECRET|[Ss]ecret)|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)\\{0,3}["']?[ \t]{0,3}[:=][ \t]{0,3}\\{0,3}["']?([\w+/.~!@%^*-]{16,}={0,2})/, looksIssued],
  // Of other keys some identify, and are no secrets.
  ['secret', 'key', /(?<=(?<!public|cache|partition|sort|foreign|primary|secondary|idempotency|object|row|lookup|group|dedup)[_-])key\\{0,3}["']?[ \t]{0,3}[:=][ \t]{0,3}\\{0,3}["']?(?:base64:)?([\w+/.~!@%^*-]{16,}={0,2})/i, looksRandom],
  ['secret', '_PAT|_PK', /_(?:PAT|PK)["']?[ \t]{0,3}[:=][ \t]{0,3}["']?([\w-]{32,})/, looksRandom],
  ['secret', keyWords, new RegExp(`${name}[ \\t]{0,40}[:=][ \\t]{0,40}(?:base64:)?([\\w+/.~!@%^*-]{20,512}={0,2})(?=[\\s#;,}&\\\\"']|$)`, 'i'), value => looksIssued(value) && !isReference(value)],
], 2);

/** Random, or a UUID: where a name says that it is a secret, it is no mere identifier. */
function looksIssued(value: string): boolean {
  return looksRandom(value) || uuid.test(value);
}

/** A word with digits in it, or a random one; not `Bearer AuthenticationScheme`. */
function isCode(value: string): boolean {
  const digits = value.match(/\d/g)?.length ?? 0;
  return digits >= 3 || (digits >= 1 && value.length >= 16) || (value.length >= 16 && changeRate(value) >= 0.3);
}

/** A member of something, as code names it. */
const isReference = (value: string): boolean => /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$/.test(value) && !/\d{2}/.test(value);

/** How names of passwords and keys end, in any case: `password`, `DB_PASSWORD`, `dbPassword`, `api-key`. */
const assigned =
  /passwords?|passwd|passphrase|passcode|pwd|(?<=[_-])pass|(?<![a-z]|::)pass(?=(?:\\{0,3}["'`])?[ \t]{0,4}[:=])|psk|secret(?:[_-]?(?:key(?:[_-]?base)?|token))?|(?:access|auth|signing|encryption|master|account|jwt|deploy|api)[_-]?(?:key|token)/iy;

const assignedWords = 'pass|psk|pwd|secret|access|auth|signing|encryption|master|account|jwt|deploy|api'.split('|');

/** What kind of value it is, where a language wants that said before the sign: `: &'static str`, `: Optional[str]`, ` string`. */
const typed =
  "(?:[ \\t]{0,2}:[ \\t]{0,2}(?:&'static )?&?[a-z][\\w.<>?|[\\]]{0,40}(?=[ \\t]{0,2}=)|[ \\t]string(?=[ \\t]{0,2}=)|[ \\t]\\{ get; (?:private )?(?:set|init); \\})";

interface Named {
  text: string;
  /** Where the name begins. */
  at: number;
  /** Behind the value. */
  end: number;
  sign: string | undefined;
  password: boolean;
}

type Judge = (found: string, named: Named) => boolean;

const asPair: Judge = (found, named) => isBareLiteral(found, named) || (named.password && isPlainWord(found));
const isOption = (found: string, { password }: Pick<Named, 'password'>): boolean =>
  !/^[-$(]|^\w+\.\w+\(/.test(found) && isLiteral(found, password, false);
const asWritten: Judge = (found, named) =>
  /\s/.test(found)
    ? isPhrase(found, named)
    : !(named.sign !== '=' && label.test(found)) && isLiteral(found, named.password, named.sign !== ':');

const asField: Judge = (found, named) =>
  (named.sign === '='
    ? beginsField(named.text, named.at)
    : endsLine(named.text, named.end) && beginsLine(named.text, named.at)) && isBareLiteral(found, named);

/** What follows a name and ends with the value, the last group; every quantifier is bounded. NAME: looked back at. */
// biome-ignore format: a table has a row for each form
const forms = formsOf([
  // In code, also as C# writes it: a quote within is written twice.
  [String.raw`(?:QUOTE\]?)?TYPED?\s{0,40}(?<sign>=>|:=|[:=])\s{0,40}WRAPPER(\\{0,3}(?:"""|'''|["'\x60]))((?:(?!\2)[^\n]){4,128})(?=\2)`, asWritten],
  [String.raw`TYPED?[ \t]{0,40}[:=][ \t]{0,40}\$?@\$?"((?:[^"\n]|""){4,128})(?="(?!"))`, (found, { password }) => isLiteral(found.replaceAll('""', '').replaceAll(' ', ''), password, true)],
  // In .env and .properties files, and in connection strings, which may be quoted as a whole; between semicolons any sign may stand.
  [String.raw`(?<sign>=|:[ \t]{1,4})([^\s"'\x60\\(){}<>[\],;&$|]{6,128})(?=[\s;&"'\x60\\]|$)`, asField],
  [String.raw`(?<=;[ \t]{0,4}(?:password|pwd))[ \t]{0,4}=[ \t]{0,4}(\{[^}\n]{3,128}\}|[^;"'\x60\s<>{}()][^;"'\x60\n<>{}()]{2,127})(?=[;"'\x60\\\n]|$)`, found => (/^[\w.]+$/.test(found) ? isBareLiteral(found, { password: true }) || isPlainWord(found) : !/^[$%{<[]|\$\{/.test(found))],
  // A whole line of an .ini, .properties or YAML file, or the line below in a YAML block.
  [String.raw`["']?[ \t]{0,60}(?:[:=]|:[ \t]{0,9}[|>][+-]?[ \t]{0,9}\r?\n)[ \t+]{0,60}((?:(?!\\{1,4}[nr])[^\s"'\x60]){4,128})(?=[ \t]{0,60}(?:[#;]|\r?\n|\\{1,4}[nr]|$))`, (found, named) => beginsLine(named.text, named.at) && (isSetting(found, named) || isWordOfSettings(found, named))],
  // Told as two: in XML, JSON and YAML.
  [String.raw`QUOTE?(?:[\s,;+-]{1,60}|[^<>\n]{0,80}\s)QUOTE?(?:[a-z]{1,20}[_-]?)?valueQUOTE?\s{0,4}[:=]\s{0,4}QUOTE?VALUE`, asPair],
  [String.raw`(?<!\bfor=["'][\w-]{0,60}NAME)["']?[^<>\n]{0,60}>([^\s<>"'\x60]{6,128})(?=</)`, isBareLiteral],
  [String.raw`</\w{1,20}>\s{0,60}<\w{1,20}>([^\s<>"'\x60]{6,128})(?=</)`, isBareLiteral],
  // In the words of SQL, Gradle, Docker and Clojure, in calls that set something, in flow mappings, in .netrc.
  [String.raw`[ \t]{1,4}'([^\s"'\x60\\]{6,128})(?=')`, isSetting],
  [String.raw`(?<=[:(]NAME)[ \t]{1,4}"([^\s"'\x60\\]{6,128})(?=")`, isSetting],
  [String.raw`[ \t]{1,4}"([^\s"'\x60\\]{6,128})(?=")`, (found, named) => beginsLine(named.text, named.at) && endsLine(named.text, named.end + 1) && isSetting(found, named)],
  // The default of a variable of Terraform.
  [String.raw`(?<=variable[ \t]{1,4}"[\w-]{0,60}NAME)"[ \t]{0,4}\{[^{}]{0,400}?default[ \t]{0,20}=[ \t]{0,4}"([^\s"\\]{4,128})(?=")`, (found, { password }) => isLiteral(found, password, true)],
  // In a sentence.
  [String.raw`(?:[ \t]{1,2}(?:is|was|to|of))?(?:[ \t]{1,2}now)?:?[ \t]{1,2}["'\x60]?([^\s"'\x60<>(){}]{8,64}?)(?=["'\x60]?[.,;!?]?(?:\s|$))`, (found, named) => named.password && isStrong(found) && isSetting(found, named)],
  [String.raw`(?<=\(\s{0,20}QUOTE[\w.-]{0,60}NAME)QUOTE\s{0,9},\s{0,9}QUOTE([^\s"'\x60\\]{6,128})(?=QUOTE)`, isSetting],
  [String.raw`(?<=[{,][ \t]{0,9}[\w-]{0,60}NAME):[ \t]{1,9}VALUE(?=[ \t]{0,9}[,}])`, isSetting],
  [String.raw`(?<=\b(?:ENV|ARG|setenv|setx|set[ \t]{1,3}-[a-z]{1,6}|config set|configure set)[ \t]{1,9}[\w.-]{0,60}NAME)[ \t]{1,9}["']?VALUE`, isSetting],
  [String.raw`(?<=(?:\b(?:login|account|machine)\s{1,9}\S{1,100}|(?:^|\n)[+\- ]?)\s{0,9}password)[ \t]{1,9}([^\s"'\x60<>(){}]{4,128})(?=\s|$)`, isSetting],
  [String.raw`(?<=-[a-z-]{0,40}NAME)(?:=|[ \t]{1,9}|["'],\s{0,9})["']?VALUE`, isOption],
]);

function formsOf(rows: readonly (readonly [source: string, accept: Judge])[]) {
  return rows.map(([source, accept]) => ({ pattern: new RegExp(expanded(source), 'iy'), accept }));
}

function expanded(source: string): string {
  return source
    .replaceAll('NAME', `(?:${assigned.source})`)
    .replaceAll('VALUE', '([^\\s"\'`<>{}\\\\,;]{4,128})')
    .replaceAll('QUOTE', `(?:${quote})`)
    .replaceAll('TYPED', typed)
    .replaceAll('WRAPPER', wrapper);
}

const scanNames = createScan(assignedWords.map(word => [word, word] as const));

/** Values that are written down where the name of a password or a key says what they are. */
function findAssigned(text: string): Span[] {
  const spans: Span[] = [];
  scanNames(text, at => {
    assigned.lastIndex = at;
    const name = assigned.exec(text)?.[0];
    if (name === undefined) return;
    const behind = at + name.length;
    const password = !/^(?:s|[aemjd])/i.test(name);
    for (const { pattern, accept } of forms) {
      pattern.lastIndex = behind;
      const match = pattern.exec(text);
      const found = match?.at(-1);
      if (!match || found === undefined) continue;
      const end = behind + match[0].length;
      if (!accept(found, { text, at, end, sign: match.groups?.sign, password })) continue;
      spans.push({ start: end - found.length, end, kind: password ? 'password' : 'secret', rank: 3 });
    }
  });
  return spans;
}

/** As a sentence has no word: letters, digits and a sign, or capitals among small letters and digits. */
const isStrong = (found: string): boolean =>
  hasLetterAndDigit(found) && (/[!#$%^&*+=?~@]/.test(found) || (/[a-z]/.test(found) && /[a-z\d][A-Z]/.test(found)));

const isPasswordOption = (found: string) => isOption(found, { password: true });
const isPasswordSetting = (found: string) => isSetting(found, { password: true });

/** Passwords without such a name: a pair with its value first, other words, programs' configuration and options. */
// biome-ignore format: a table has a row for each form
const findUnnamed = createFinder([
  ['password', 'value', new RegExp(expanded(String.raw`valueQUOTE?\s{0,4}[:=]\s{0,4}QUOTE?VALUE(?=QUOTE?[\s,;+-]{1,60}QUOTE?(?:[a-z]{1,20}[_-]?)?(?:name|key|id|type)QUOTE?\s{0,4}[:=]\s{0,4}QUOTE?[\w./-]{0,60}NAME)`), 'i'), found => isBareLiteral(found, { password: true })],
  ['password', 'identified|secured', /\b(?:identified|secured)[ \t]{1,4}by[ \t]{1,4}["']([^\s"'`\\]{6,128})(?=["'])/i, isPasswordSetting],
  ['password', 'requirepass|masterauth|rootpw|ldap_bind_pw|bindpw|smtp_pass|pass', /(?<=(?:^|\n)[+\- ]?)(?:requirepass|masterauth|rootpw|ldap_bind_pw|bindpw|smtp_pass|pass)[ \t]{1,9}["']?([^\s"'`<>{}\\,;()=:]{4,128})(?=["']?\s)/, isPasswordSetting],
  // A line of .pgpass.
  ['password', '', /(?:^|\n)[+\- ]?[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w*-]{1,60}:([^\s:]{4,128})(?=\s|$)/, isPasswordSetting],
  ['password', '-pass|-token|-key', /-(?:pass|token|key)(?:=|[ \t]{1,9}|["'],\s{0,9})["']?([^\s"'`<>{}\\,;]{4,128})/i, isPasswordOption],
  ['password', 'mysql|mariadb|mycli|sshpass|docker login|podman login|helm registry|mongo|htpasswd|7z a|7z x|zip|rar -|redis-cli|sqlcmd|ldap|az login|smbclient|xfreerdp', /(?:\b|(?<=\bun))(?:mysql\w{0,9}|mariadb\w{0,9}|mycli|sshpass|docker login|podman login|helm registry login|mongo\w{0,9}|htpasswd|7z|zip|rar|redis-cli|sqlcmd|ldap\w{3,9}|az login|smbclient|xfreerdp)\b[^\n|]{0,200}?[ \t](?:-[pPaw][ \t]{0,4}|\/p:)["']?([^\s"'`<>{}\\-][^\s"'`<>{}\\]{3,127})/, isPasswordOption],
  ['password', 'curl|wget|lftp|svn', /\b(?:curl|wget|lftp|svn)\b[^\n|]{0,300}?[ \t](?:-u|-a|--user|--proxy-user|-U|--auth)[ \t=]{0,4}["']?[^\s:"'`<>{}]{0,100}:([^\s"'`<>{}\\]{3,128})/, isPasswordOption],
  ['password', 'pass', /\bpass(?:in|out)?[ \t]{1,4}pass:([^\s"'`<>{}\\]{4,128})/, isPasswordOption],
  ['password', 'auth|basicauth|basic_auth', /(?:basic_?auth|(?<![\w.])auth(?=["']?\s{0,4}[:=]))["']?\s{0,4}(?:[:=]\s{0,4})?\(\s{0,9}["'][^\s"']{1,64}["'],\s{0,9}["']([^\s"'`\\]{6,128})(?=["'])/i, isPasswordSetting],
  // The keys and salts of WordPress.
  ['secret', 'define(', /define\(\s{0,9}'(?:[A-Z]{1,20}_){1,3}(?:KEY|SALT)',\s{0,20}'([^'\\\n]{32,128})(?=')/, value => isJumble(value) || looksRandom(value)],
  ['password', 'SecureString', /(?<=ConvertTo-)SecureString[ \t]{1,4}(?:-String[ \t]{1,4})?["']([^\s"'`]{4,128})(?=["'])/i, isPasswordOption],
], 3);

export const assignmentFinders: readonly ((text: string) => Span[])[] = [findAssigned, findUnnamed, clusterSecrets];

/** What stands for a value that somebody is to fill in, or that comes from elsewhere. */
const placeholder =
  /[<>{}\u3000-\u9fff]|^\$\w|\$[({]|\$(?:[a-z_]{3,}|[A-Z_]{3,})(?![A-Za-z\d])|%[(%]|^(?:\$|%|\.\.|\*+$|xx+|\[)|(.)\1{3}|change.?(?:me|it|this)|your|example|placeholder|dummy|redacted|masked|insert|replace|not.?(?:set|needed|used|required)|todo|env[.:]|process\.|vault:|secretref|^(?:ref|arn|file|https?):/i;

/** Words of forms, types and tests. */
const word =
  /^(?:string|text|hidden|required|optional|boolean|number|object|undefined|null|none|true|false|missing|invalid|default|unknown|value|label|input|field|enabled|disabled|always|never|hashed|encrypted|bcrypt|confirmed|nullable|password|passwd|passphrase|secret|token|credentials?|api.?key)$/i;

const path = /^(?:~?[./\\]|[A-Za-z]:[\\/]|v\d{1,2}\/|@[a-z]+(?::[a-z]+)?\/)|\/.*\//i;

/** Base64 and the like, in which two slashes, an algorithm's name and what stands for a value may be by chance. */
const isCoded = (value: string): boolean =>
  /^[A-Za-z0-9+/]{24,}={0,2}$/.test(value) && looksRandom(value) && !isWorded(value);

/** What finds a field of a page, or names one before: `#user-password`, `input[type=password]`, `@password`. */
const selector = /^(?:input|form|div)?(?:[#.@][a-z]+(?:[-_][a-z]+)*|\[[\w-]{1,40}[*^$~|]?=[^\]]{0,100}\])$/i;

/** What a field has to keep to: `required|min:8|confirmed`, `min=8,max=20`. */
const rule =
  /^(?:required|nullable|sometimes|bail|string|confirmed|hashed|omitempty|min|max|len|min_?length|max_?length|between|size)[|:=,]/i;

/** What stands beside a field: `Passwort?`, `Required!`. */
const label = /^\p{Lu}\p{Ll}+[!?*:.…]{1,3}$/u;

/** Names of algorithms have digits as passwords do. */
const algorithm = /^(?:sha|md|aes|base|utf|hmac|[hrep]s|ed|rsa|pbkdf|argon|x)[-_]?\d/i;

/** `auth.password.label`, `settings/secret`, `current-password`, `clientSecret`: words that name something. */
const naming = /^[a-z]+(?:[-_.:/][a-z]+)*$/i;

/** `my-app-v1-test-4`: the name of something, with numbers. */
const numbered = /^(?:[a-z]+\d{0,3}|\d{1,3})(?:[-_.](?:[a-z]+\d{0,3}|\d{1,3})){1,30}$/i;

/** `assigned`: by a sign that no description of a form or of a type is written with. */
function isLiteral(value: string, password: boolean, assigned: boolean): boolean {
  if (isJumble(value) || isCoded(value)) return true;
  if (placeholder.test(value) || word.test(value) || path.test(value) || algorithm.test(value)) return false;
  if (selector.test(value) || rule.test(value)) return false;
  if (!/[\x21-\x7e]/.test(value) || /^[\d.,:]{0,5}$/.test(value)) return false;
  const isName = naming.test(value);
  if (!password) return !isName && !numbered.test(value) && value.length >= 8 && hasLetterAndDigit(value);
  if (!isName) return /\d/.test(value) || /[!#$%^&*+=?~@]/.test(value);
  return assigned && /^[a-z]{6,}$/.test(value) && !/pass|secret|pwd|key/.test(value);
}

/** What a person writes with as many signs: an address, a template, a pattern, a sentence, or something in brackets. */
const written =
  /^\/|:\/\/|(?:[?&]\w+=.*){2}|\$\{.*\}|a-z|A-Z|0-9|\\[dsw]|masked:|^[[{(<].*[\])}>]$|(?:^|\s)[A-Z]?[a-z]{2,}[,.:]?(?:\s|$)/;

/** As frameworks make keys, of letters, digits and many signs: what stands for a value in a template may be among them by chance. */
function isJumble(value: string): boolean {
  const signs = new Set(value.replace(/[\w\s.:/]/g, ''));
  const letters = value.match(/[A-Za-z]{3,}/g)?.join('').length ?? 0;
  const isMade = value.length >= 24 && signs.size >= 4 && /\d.*\d/.test(value) && letters < value.length * 0.7;
  return isMade && /[A-Za-z]/.test(value) && !written.test(value);
}

/** A passphrase with blanks that is all of its line or field: with a word that no sentence has, behind a variable of the environment, or as Google issues it. */
function isPhrase(value: string, { text, at, end, password }: Named): boolean {
  const isAll = /^\\{0,3}["'`]{1,3}[ \t]{0,4}(?:[,;})\]#\r\n]|\\[nr]|$)/.test(text.slice(end, end + 12));
  if (!isAll || isJumble(value)) return isAll;
  if (!password || placeholder.test(value) || !/^(?:\S+ ){1,5}\S+$/.test(value)) return false;
  if (/^(?:[a-z]{4} ){3}[a-z]{4}$|(?=\S{5})\S*[A-Za-z]\d+[A-Za-z!#$%^&*+=~@]/.test(value)) return true;
  return hasLetterAndDigit(value) && /^[A-Z_]{3,20}=["']/.test(text.slice(at, at + 22));
}

function isBareLiteral(value: string, { password }: Pick<Named, 'password'>): boolean {
  // An access to a member, a number, a call or a type: code, not a setting.
  const isMember = /^[A-Za-z_]\w*\.[A-Za-z_]/.test(value) && !(value.length >= 12 && changeRate(value) >= 0.5);
  const isCode =
    isMember || /^[\d.]+$|:$|^(?:u?int|float)\d{1,3}(?:_t)?$|^[A-Z][a-z]+\d{1,3}(?:[A-Z][a-z]{2,})+$/.test(value);
  if (value.endsWith('=') && !/^(?:[A-Za-z0-9+/]{4})+[A-Za-z0-9+/]{2,3}={1,2}$/.test(value)) return false;
  if (password && /^\d{6,}$/.test(value)) return true;
  return isCoded(value) || (!isCode && hasLetterAndDigit(value) && isLiteral(value, password, false));
}

/** The rest of a line of settings: more signs than in code, and no identifier that code would have there. */
function isSetting(value: string, named: Pick<Named, 'password'>): boolean {
  if (/[,;({[]$|^[([{|>&*!]|[\w\])]\(|=>|&&|\|\||^\w+\[\w+\]$/.test(value) || isIdentifier(value)) return false;
  const isSigned =
    named.password && value.length >= 8 && /[A-Za-z][!@#%^~][A-Za-z\d]/.test(value) && isLiteral(value, true, false);
  return isSigned || isBareLiteral(value, named);
}

const isPlainWord = (value: string): boolean =>
  /^[a-z]{6,}$/.test(value) && !word.test(value) && !placeholder.test(value) && !/pass|secret|pwd|key/.test(value);

/** A password without a digit: behind the name of a variable of the environment, or beside the name of its user. */
function isWordOfSettings(found: string, { text, at, end, password }: Named): boolean {
  if (!password || !isPlainWord(found)) return false;
  const from = nameStart(text, at);
  const name = text.slice(from, at) + text.slice(at).split(/[^\w.]/, 1)[0];
  if (/^[A-Z]\w*_[A-Z]+$/.test(name) || (name.includes('.') && text.startsWith(`${name}=`, from))) return true;
  const above = text
    .slice(Math.max(0, from - 200), from)
    .split('\n')
    .at(-2);
  return [above, text.slice(end, end + 200).split('\n')[1]].some(line =>
    /^[ \t+-]{0,40}(?:user(?:_?name)?|login|host|database)[ \t]{0,9}[:=][ \t]{0,9}[^\s,;"'({]+$/.test(line ?? ''),
  );
}

const words =
  /pass|pwd|secret|token|key|value|input|param|arg|str|text|user|te?mp|other|new|old|var|data|field|hash|base\d|sha\d|md\d|code/i;

/** `newPassword2`, `base64`, `hash1`: what code calls a value. */
const isIdentifier = (value: string): boolean =>
  /^[\w$]+$/.test(value) && words.test(value) && changeRate(value) < 0.5 && !isCoded(value);

const section =
  /["']?\b(?:data|stringData)["']?:[ \t]{0,9}(?:\{([^{}]{0,30000})\}|\r?\n((?:[+\- ]?[ \t]+[^\n]*(?:\n|$))+))/g;

const entry =
  /["']?[\w.-]{1,128}["']?:[ \t]{0,9}(?:[|>][+-]?[ \t]{0,9}\r?\n[+\- ]?[ \t]{0,60})?["']?([^\s"',{}$]{4,20000})/g;

/** The entries of a Secret of Kubernetes, whatever they are named: in YAML up to the next document, or in JSON. */
function clusterSecrets(text: string): Span[] {
  const spans: Span[] = [];
  let covered = 0;
  for (const { index } of matchesOf(text, /\bkind["']?:[ \t]{0,4}["']?Secret\b/g)) {
    if (index < covered) continue;
    const before = text.slice(Math.max(covered, index - 32_768), index);
    const from = index - before.length + Math.max(0, before.lastIndexOf('\n---'));
    const [rest = ''] = text.slice(index, index + 32_768).split('\n---', 1);
    covered = index + rest.length;
    for (const { 0: whole, 1: json, 2: yaml = '', index: at } of text.slice(from, covered).matchAll(section)) {
      const entries = json ?? yaml;
      const begin = from + at + whole.lastIndexOf(entries);
      for (const { 0: named, 1: found = '', index: place } of entries.matchAll(entry)) {
        const end = begin + place + named.length;
        if (!found.startsWith('[masked:')) spans.push({ start: end - found.length, end, kind: 'secret', rank: 3 });
      }
    }
  }
  return spans;
}

/** A field of a line: the identifier that ends with the name stands at its beginning, or behind a blank or a sign that parts fields; also in a patch. */
function beginsField(text: string, at: number): boolean {
  const from = nameStart(text, at);
  return from === 0 || /[\s;&?"'`]$|\\[nrt]$|(?:^|\n)[+-]$/.test(text.slice(Math.max(0, from - 2), from));
}

const maxNameLength = 60;

/** Where the identifier begins that goes on at a place. */
function nameStart(text: string, at: number): number {
  let from = at;
  while (from > 0 && at - from < maxNameLength && /[\w.-]/.test(text.charAt(from - 1))) from--;
  // The letter of an escaped line break is no part of it.
  return from < at && text.charAt(from - 1) === '\\' && /[nrt]/.test(text.charAt(from)) ? from + 1 : from;
}

/** Longer than any lead. */
const maxLead = 250;

/** A place, a number, a mark of a patch or of a quotation, and blanks. */
const lead =
  /^[ \t]{0,8}(?:[\w./@-]{1,160}[:-])?(?:\d{1,7}[:\-|│\t]?)?[+\-> |│#*\t]{0,60}(?:export |set |\$env:|\$)?["']?$/;

function beginsLine(text: string, at: number): boolean {
  const from = nameStart(text, at);
  const before = text.slice(Math.max(0, from - maxLead), from);
  return lead.test(before.split(/\n|\\{1,4}[nr]/).at(-1) ?? '');
}

const endsLine = (text: string, at: number): boolean =>
  /^[ \t]{0,8}(?:#|\r?\n|\\{1,4}[nr]|$)/.test(text.slice(at, at + 12));
