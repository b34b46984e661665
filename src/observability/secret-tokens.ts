/** A stretch of a text that is a secret. */
export interface Span {
  start: number;
  /** Behind its last character. */
  end: number;
  /** What it is, as the placeholder says it. */
  kind: string;
  /** How sure its kind is, 0 the surest: names the kind where finds overlap. */
  rank: number;
}

/** In order and without overlap: finds that share characters become one that covers them all. */
export function joinSpans(spans: readonly Span[]): Span[] {
  const joined: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    const last = joined.at(-1);
    if (!last || span.start >= last.end) {
      joined.push({ ...span });
      continue;
    }
    last.end = Math.max(last.end, span.end);
    if (span.rank < last.rank) {
      last.rank = span.rank;
      last.kind = span.kind;
    }
  }
  return joined;
}

/** A kind, what is looked for (words in any case, `|` between them; none: the pattern is searched for), and what must follow. */
type Row = readonly [kind: string, words: string, pattern: RegExp, accept?: (secret: string) => boolean];

/** Visits the places where one of many words stands, in any case. An expression with all of the words takes ten times as long. */
export function createScan<Entry>(words: readonly (readonly [word: string, entry: Entry])[]) {
  const slots = new Map<number, { codes: readonly number[]; entry: Entry }[]>();
  // Most of a text is passed over by this table alone, which a processor keeps near.
  const isPossible = new Uint8Array(0x8000);
  for (const [word, entry] of words) {
    const codes = [...word].map(character => character.charCodeAt(0) | 0x20);
    const [a = 0, b = 0, c] = codes;
    const thirds = c === undefined ? Array.from({ length: 96 }, (_, at) => at + 32) : [c];
    for (const slot of new Set(thirds.map(third => slotOf(a, b, third)))) {
      slots.set(slot, [...(slots.get(slot) ?? []), { codes, entry }]);
      isPossible[slot] = 1;
    }
  }
  return (text: string, visit: (at: number, entry: Entry) => void): void => {
    let [a, b] = [text.charCodeAt(0) | 0x20, text.charCodeAt(1) | 0x20];
    for (let at = 2; at < text.length; at++) {
      const c = text.charCodeAt(at) | 0x20;
      const slot = slotOf(a, b, c);
      if (isPossible[slot] === 1) {
        for (const { codes, entry } of slots.get(slot) ?? []) if (standsAt(text, at - 2, codes)) visit(at - 2, entry);
      }
      a = b;
      b = c;
    }
  };
}

function standsAt(text: string, from: number, codes: readonly number[]): boolean {
  for (let at = 0; at < codes.length; at++) if ((text.charCodeAt(from + at) | 0x20) !== codes[at]) return false;
  return true;
}

/** A place in a table of 32,768 for three characters; others may share it. */
const slotOf = (a: number, b: number, c: number): number => ((a << 10) ^ (b << 5) ^ c) & 0x7fff;

/** Finds a secret by what is around it: the first group, at the end of the match, or all of it with a group `before` (looked back at). */
export function createFinder(rows: readonly Row[], rank: number): (text: string) => Span[] {
  const rules = rows.map(([kind, words, { source, flags }, accept], index) => {
    const pattern = new RegExp(source, `${flags}${words === '' ? 'g' : 'y'}`);
    return { index, kind, pattern, accept, words: words.split('|').filter(word => word !== '') };
  });
  const searched = rules.filter(({ words }) => words.length === 0);
  const scan = createScan(rules.flatMap(rule => rule.words.map(word => [word, rule] as const)));
  return text => {
    // In the order of the rules: where finds are the same, the first one names the kind.
    const spans: Span[][] = [];
    // Behind what was matched: no rule goes through a part of the text twice.
    const done: number[] = [];
    const add = ({ kind, index, accept }: (typeof rules)[number], match: RegExpExecArray) => {
      const end = match.index + match[0].length;
      done[index] = end;
      const before = match.groups?.before;
      const found = before === undefined ? (match[1] ?? '') : before + match[0];
      // What ends a sentence is not part of the secret: it would get another placeholder there than elsewhere.
      const secret = found.replace(/[.,;]$/, '');
      const start = end - found.length;
      if (secret === '' || accept?.(secret) === false) return;
      spans[index] ??= [];
      spans[index].push({ start, end: start + secret.length, kind, rank });
    };
    scan(text, (at, rule) => {
      rule.pattern.lastIndex = at;
      const match = at < (done[rule.index] ?? 0) ? null : rule.pattern.exec(text);
      if (match) add(rule, match);
    });
    for (const rule of searched) for (const match of matchesOf(text, rule.pattern)) add(rule, match);
    return spans.flat();
  };
}

/** All matches of a global pattern that takes a character or more. Unlike `matchAll` it makes no copy of the pattern for each text. */
export function matchesOf(text: string, pattern: RegExp): RegExpExecArray[] {
  const matches: RegExpExecArray[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) matches.push(match);
  return matches;
}

/**
 * Tokens with a prefix of their own (a blank between them), the more special ones first, and what follows: linear, as a quantifier
 * without bound must not be followed by something that can fail. Facts from gitleaks' rule set and the vendors' published prefixes.
 */
// biome-ignore format: a table has a row for each format
const formats: readonly Row[] = [
  ['anthropic_key', 'sk-ant-', /[\w-]{16,}/],
  ['openrouter_key', 'sk-or-', /(?:v\d-)?[\w-]{16,}/],
  ['openai_key', 'sk-proj- sk-svcacct- sk-admin- sk-None-', /[\w-]{16,}/, hasCode],
  // Langfuse and LaunchDarkly have a UUID behind it, Helicone four words of seven.
  ['api_key', 'sk-lf- sdk-', /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\w-])/],
  ['api_key', 'sk-helicone-', /[\w-]{24,}/],
  // OpenAI's older keys, and those of the vendors that took the form over: LiteLLM, DeepSeek, Moonshot…
  ['api_key', 'sk-', /[\w-]{22}(?![\w-]|\.\w)/, isMixedCode],
  ['api_key', 'sk-', /[\w-]{16,}/, hasCode],
  ['google_key', 'AIza', /[\w-]{30,}/],
  ['google_token', 'ya29. GOCSPX-', /[\w-]{20,}/],
  ['google_token', '1//0', /[\w-]{38,}/, looksRandom],
  ['xai_key', 'xai-', /[A-Za-z0-9]{20,}/],
  ['groq_key', 'gsk_', /[A-Za-z0-9]{20,}/],
  ['perplexity_key', 'pplx-', /[A-Za-z0-9]{32,}/],
  ['huggingface_token', 'hf_ api_org_', /[A-Za-z0-9]{30,}/],
  ['model_key', 'r8_ fw_ nvapi- pcsk_ jina_ tvly-', /[\w-]{24,}/, looksMixed],
  ['model_key', 'csk- lsv2_pt_ lsv2_sk_ vck_ llx- rpa_ wandb_v1_', /\w{40,}/, isCodeOf],
  ['github_token', 'ghp_ gho_ ghu_ ghs_ ghr_', /[A-Za-z0-9]{30,}/],
  ['github_token', 'github_pat_', /\w{22,}/],
  ['gitlab_token', 'glpat- glptt- gldt- glrt- glrtr- glcbt- glsoat- glft- glimt- glagent- gloas- glffct- glwt- GR1348941', /[\w.-]{20,}/, token => isCodeOf(token) || !isWorded(token)],
  // Not the zeros of a coded picture.
  ['aws_access_key', 'AKIA ASIA ABIA ACCA', /[A-Z0-9]{16}(?![a-z]{4})/, token => new Set(token).size >= 6],
  ['aws_access_key', 'ABSK bedrock-api-key-', /[A-Za-z0-9+/]{60,}={0,2}/],
  ['aws_session_token', 'IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz', /[\w+/%-]{60,}={0,2}/],
  ['slack_token', 'xapp- xwfp- xoxa- xoxb- xoxc- xoxd- xoxe- xoxe.xoxb- xoxe.xoxp- xoxo- xoxp- xoxr- xoxs-', /[\w%-]{10,}/],
  ['stripe_key', 'sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_', /[A-Za-z0-9]{16,}/],
  ['stripe_key', 'whsec_', /[A-Za-z0-9+/=]{24,}/],
  ['npm_token', 'npm_', /[A-Za-z0-9]{30,}/],
  ['pypi_token', 'pypi-AgE', /[\w-]{40,}/],
  ['sendgrid_key', 'SG.', /[\w-]{16,64}\.[\w-]{16,}/],
  ['mail_key', 'key- xkeysib- xsmtpsib-', /(?:[0-9a-f]{64}[\w-]{0,24}|[0-9a-f]{32}(?![\w-]))/, looksRandom],
  ['age_key', 'AGE-SECRET-KEY-1 AGE-PLUGIN-', /[A-Z0-9-]{40,}/],
  ['shopify_token', 'shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shpit_', /[A-Fa-f0-9]{32,}/],
  ['vault_token', 'hvs. hvb. hvr.', /[\w-]{20,}/, isCodeOf],
  ['atlassian_token', 'ATATT3 ATCTT3 ATBB ATOA ATTP', /[\w=-]{20,}/, looksMixed],
  ['notion_token', 'secret_', /[A-Za-z0-9]{43}(?!\w)/, looksMixed],
  ['databricks_token', 'dapi dkea dose dsapi', /[0-9a-f]{32}(?:-\d+)?(?![a-f0-9])/, looksRandom],
  ['grafana_token', 'eyJrIjoi', /[A-Za-z0-9+/]{60,}={0,2}/],
  ['newrelic_key', 'NRAK- NRII- NRIQ- NRRA- NRSP- NRJS- NRBR- NRAL- NRLS-', /[\w-]{18,}/],
  ['service_token', 'dop_v1_ doo_v1_ dor_v1_ lin_api_ lin_oauth_ lin_wh_ ntn_ figd_ figu_ figdr_ figur_ figoh_ figor_ glsa_ glc_ PMAK- PMAT- sbp_ sb_secret_ sbp_oauth_ dckr_pat_ dckr_oat_ sq0atp- sq0csp- sq0cst- vercel_blob_rw_ vci_ vca_ vcr_ phs_ crsr_ hcaik_ hcxik_ CCIPRJ_', /[\w+/=-]{20,}/, isCodeOf],
  ['service_token', 'pscale_tkn_ pscale_pw_ pscale_oauth_ dp.pt. dp.st. dp.ct. dp.sa. dp.said. dp.scim. dp.audit. fo1_ fm1r_ fm1a_ fm2_ sntrys_ sntryu_ sntrya_ snyk_uat. HRKU- pul- atlasv1. ops_eyJ sk.eyJ dt0c01. dt0s16. dt0s01. v1.0- pat-na1- pat-eu1- pat-na2-', /(?:[\w-]{1,30}\.)?[\w+/=,-]{30,}/, isCodeOf],
  ['service_token', 'rubygems_ rdme_ shippo_live_ shippo_test_ duffel_live_ duffel_test_ CFPAT- CCIPAT_ bkua_ bkct_ napi_ mdb_sa_sk_ FLWSECK- FLWSECK_TEST- clojars_ CLOJARS_ access-sandbox- access-production- squ_ sqp_ sqa_', /[\w=-]{24,}/, hasLetterAndDigit],
  ['service_token', 'access_token$production$ access_token$sandbox$', /[a-z0-9]{16}\$[0-9a-f]{32}/],
  ['service_token', 'sk_', /[0-9a-f]{48}(?!\w)/, looksRandom],
  ['service_token', 'pa- pat.', /(?:[\w-]{43}|[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20})(?![\w-])/, looksMixed],
  ['service_token', 'dG9rOm', /[A-Za-z0-9+/]{40,}={0,2}/, looksMixed],
  // What programs store of a password: it can be guessed from that.
  ['password_hash', '$apr1$ $2a$ $2b$ $2y$ $5$ $6$ $y$ $argon2i$ $argon2d$ $argon2id$ {SSHA} {SSHA256} {SSHA512} pbkdf2_sha256$', /[\w./$=,+-]{30,}/, looksMixed],
  ['service_token', 'pnu_ sgp_ nfp_ vcp_ rnd_ re_ phx_ tskey- tfp_ EZAK EZTK fio-u- sha256~ ico- tk-us- p8e- s-s4t2ud- s-s4t2af- signkey-prod- akab- amzn.mws. amzn1.oa2-cs.v1. cfut_ cfat_ cfk_ tr_prod_', /[\w=-]{24,}/, looksRandom],
  ['service_token', 'apify_api_ e2b_ zpka_ tgp_v1_', /[\w-]{32,}/, looksRandom],
  ['service_token', 'fc-', /[0-9a-f]{32}(?![\w-])/, looksRandom],
  ['service_token', 'cio AKID AKLT', /[A-Za-z0-9]{28,48}(?![\w-])/, token => looksRandom(token) && !isWorded(token)],
  // A sealed session: of iron, and of the command line of Railway.
  ['session', 'Fe26.2**', /[\w*-]{60,}/],
  ['service_token', 'EAAA', /[\w-]{56,64}(?![\w-])/, looksMixed],
  ['service_token', 'LTAI AQVN', /(?:\w{16,20}|[\w-]{35,38})(?![\w-])/, looksMixed],
  ['service_token', 'EAAC EAAM EAAB EAAG AKCp cmVmd sl.', /(?:u\.)?[\w-]{59,}/, looksMixed],
  ['airtable_token', 'pat', /[A-Za-z0-9]{14}\.[a-f0-9]{64}/],
];

/** Tokens without a prefix, or whose first part is looked back at, so that no run of characters is gone through twice. */
// biome-ignore format: a table has a row for each format
const unprefixed: readonly Row[] = [
  ['jwt', '.eyJ', /\.(?<=(?<before>eyJ[\w-]{8,4000})\.)eyJ[\w-]{8,}(?:\.[\w-]*)?/],
  // The name of a hashed file is lower case after the dot.
  ['zhipu_key', '', /\.(?<=(?<before>[0-9a-f]{32})\.)(?=[A-Z\d]{0,16}[a-z])(?=[a-z\d]{0,16}[A-Z])[A-Za-z0-9]{16,17}(?![\w.-])/],
  ['telegram_token', ':AA', /(?<=(?<before>\d{8,10})):AA[\w-]{32,}/],
  ['discord_token', '', /([MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40})/, looksRandom],
  // Azure signs its keys: where the signature stands says how long they are.
  ['azure_key', 'JQQJ99|AZDO|AzSe|AzFu|AzCa|ACDb|+ASt|+AEh|+ASb|+ACR', /(?<=(?<![\w+/-])(?<before>[\w+/-]{33,76}))(?:JQQJ99\w{26}|AZDO\w{4}|(?:AzSe|AzFu|AzCa|ACDb|\+A(?:St|Eh|Sb|CR))[\w+/-]{6}={0,2})(?![\w+/=-])/],
  ['azure_secret', 'Q~', /(?<=(?<before>[\w~.]{3}\d))Q~[\w~.-]{31,34}/],
  ['vault_token', '', /s\.(?<=(?<before>(?<![\w.$)\]-]))s\.)[A-Za-z0-9]{24}(?![\w.(])/, looksRandom],
  ['twilio_key', 'SK', /(SK[0-9a-f]{32})(?![0-9a-f])/, token => looksRandom(token.slice(2))],
  ['mail_key', '-us', /(?<=(?<before>[0-9a-f]{32}))-us\d{1,2}(?!\w)/, looksRandom],
  ['service_token', 'prod:|dev:', /((?:prod|dev):[a-z]+-[a-z]+-\d{1,4}\|[\w+/=-]{40,})/],
  ['service_token', '1/|2/', /([12]\/\d{13,18}:[0-9a-f]{32})(?!\w)/],
  ['newrelic_key', 'NRAL', /(?<=(?<before>[0-9a-f]{32,36}(?:FF)?))NRAL/],
];

const findUnprefixed = createFinder(unprefixed, 1);

const prefixed = formats.flatMap(([kind, prefixes, tail, accept = () => true]) =>
  prefixes.split(' ').map(prefix => [prefix, { kind, prefix, tail: new RegExp(tail.source, 'y'), accept }] as const),
);

const findPrefix = createScan(prefixed);

export function findTokens(text: string): Span[] {
  const spans: Span[] = [];
  let covered = 0;
  findPrefix(text, (at, format) => {
    const span = at < covered ? undefined : tokenAt(text, at, format);
    if (span) spans.push(span);
    covered = span?.end ?? covered;
  });
  const awsKeys = spans.filter(({ kind }) => kind === 'aws_access_key');
  return [...spans, ...findUnprefixed(text), ...besideAwsKeys(text, awsKeys)];
}

const judgedLength = 136;

function tokenAt(
  text: string,
  start: number,
  { kind, prefix, tail, accept }: (typeof prefixed)[number][1],
): Span | undefined {
  if (!text.startsWith(prefix, start)) return undefined;
  const from = start + prefix.length;
  // Judged by its beginning, so that long text which is none is not read again for each prefix in it.
  tail.lastIndex = 0;
  const found = tail.exec(text.slice(from, from + judgedLength))?.[0];
  if (found === undefined || !accept(found)) return undefined;
  if (!beginsWord(text, start) && !isGlued(text, start, prefix, found)) return undefined;
  tail.lastIndex = from;
  return { start, end: from + (tail.exec(text)?.[0] ?? found).length, kind, rank: 1 };
}

/** Also after an escaped line break (`\n`) or an encoded character (`%3D`). */
const beginsWord = (text: string, at: number): boolean =>
  !/[A-Za-z0-9]$/.test(text.slice(at - 1, at)) ||
  /(?:\\[nrtbf]|%[0-9A-Fa-f]{2})$/.test(text.slice(Math.max(0, at - 3), at));

/** Whether a token begins in the middle of a word. A prefix with a sign in it does so by accident only where it is short. */
function isGlued(text: string, at: number, prefix: string, tail: string): boolean {
  const isMarked = prefix.length >= 4 && /[^A-Za-z0-9]/.test(prefix);
  if (isMarked) return hasLetterAndDigit(tail) || looksMixed(tail);
  return (
    (prefix.length >= 4 || /[A-Z]/.test(tail)) &&
    looksMixed(tail) &&
    !/[A-Za-z0-9+/]{24}$/.test(text.slice(Math.max(0, at - 24), at))
  );
}

/** `sk-` and the like also begin names of packages and of CSS classes; a key has a long part with letters and digits. */
function hasCode(token: string): boolean {
  return token.match(/[^-_.]{16,}/g)?.some(isCodeOf) ?? false;
}

/** A code of a format that is known: one in thirty of twenty characters has no digit. */
function isCodeOf(token: string): boolean {
  return hasLetterAndDigit(token) || looksMixed(token);
}

export function hasLetterAndDigit(token: string): boolean {
  return /\d/.test(token) && /[A-Za-z]/.test(token);
}

const reach = 200;

/** The secret half of an AWS key has no form of its own but its length: it is looked for near the public half. */
function besideAwsKeys(text: string, keys: readonly Span[]): Span[] {
  // Neighbourhoods that overlap are one, so that nothing is read twice.
  const near = joinSpans(keys.map(key => ({ ...key, start: Math.max(0, key.start - reach), end: key.end + reach })));
  return near.flatMap(({ start, end }) =>
    [...text.slice(start, end).matchAll(/(?<![\w/+=])[A-Za-z0-9/+]{40}(?![\w/+=])/g)]
      .filter(([code]) => /[a-z]/.test(code) && /[A-Z]/.test(code) && /[0-9/+]/.test(code))
      .map(({ index }) => start + index)
      .map(at => ({ start: at, end: at + 40, kind: 'aws_secret_key', rank: 1 })),
  );
}

/** Items in groups, each of which goes on for as long as the next item belongs to the last one. */
export function groupsOf<Item>(items: readonly Item[], belongs: (last: Item, next: Item) => boolean): Item[][] {
  const groups: Item[][] = [];
  for (const item of items) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    if (group && last !== undefined && belongs(last, item)) group.push(item);
    else groups.push([item]);
  }
  return groups;
}

/** A stretch of characters of base64. */
export interface Run {
  start: number;
  end: number;
}

export const shortestRun = 40;

/** The stretches of base64 that may be a line or a text. Every one that is long enough covers one of the places that are looked at. */
export function base64Runs(text: string): Run[] {
  const runs: Run[] = [];
  for (let at = shortestRun - 1; at < text.length; at += shortestRun) {
    if (!isBase64(text.charCodeAt(at))) continue;
    let start = at;
    while (start > 0 && isBase64(text.charCodeAt(start - 1))) start--;
    let end = at + 1;
    while (end < text.length && isBase64(text.charCodeAt(end))) end++;
    at = end;
    if (end - start < shortestRun || !isMixedCase(text.slice(start, end))) continue;
    while (text.charAt(end) === '=') end++;
    runs.push({ start, end });
  }
  return runs;
}

const isBase64 = (code: number): boolean =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 47 && code <= 57) || code === 43;

export const isMixedCase = (text: string): boolean => /[a-z]/.test(text) && /[A-Z]/.test(text) && /\d/.test(text);

export const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Whether a text is a machine's choice and not a word, a path, a date, a UUID or a template. */
export function looksRandom(value: string): boolean {
  const head = value.slice(0, 512);
  const bare = head.replace(/[^A-Za-z0-9]/g, '');
  if (uuid.test(value) || bare.length < 16) return false;
  const letters = bare.match(/[A-Za-z]/g)?.length ?? 0;
  const enough = letters >= 4 && bare.length - letters >= 2;
  const bits = entropy(bare);
  if (enough && bits >= 3 && changeRate(bare) >= 0.3) return true;
  // One in thirty such codes takes turns more seldom, and one in thirteen of base64 has less than two digits.
  const [hex = ''] = /^(?:0x)?(?:[0-9a-f]{32,}|[0-9A-F]{32,})(?![A-Za-z0-9])/.exec(head) ?? [];
  const isHex = new Set(hex).size >= 8 && hasLetterAndDigit(hex) && !hex.includes('123456789');
  return isHex || isMixedCode(bare) || (enough && bits >= 4 && /^[a-z0-9]{40,}$/.test(value));
}

/** Letters of both kinds that take turns and make no words. */
function isMixedCode(text: string): boolean {
  return /[a-z]/.test(text) && /[A-Z]/.test(text) && looksMixed(text) && !isWorded(text);
}

/** Whether most of a text is words, one after the other as identifiers have them. */
export function isWorded(text: string): boolean {
  const words =
    text.match(/[A-Za-z][a-z]{2,}/g)?.filter(word => /[aeiou]/i.test(word) && !/[^aeiouy]{5}/i.test(word)) ?? [];
  return words.join('').length >= text.length * 0.7;
}

/** The same for keys that may have letters only. */
export function looksMixed(value: string): boolean {
  return value.length >= 16 && changeRate(value) >= 0.25 && entropy(value) >= 3;
}

/** How often capitals, small letters and digits take turns: about half the time in random text, seldom in names. */
export function changeRate(text: string): number {
  const changes = text.match(/\d(?=\D)|[A-Z](?=[^A-Z])|[^A-Z\d](?=[A-Z\d])/g)?.length ?? 0;
  return changes / Math.max(1, text.length - 1);
}

/** Bits a character. */
function entropy(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}

/** What base64 stands for, as far as it is ASCII; other bytes become other characters. */
export const decoded = (base64: string): string => Buffer.from(base64, 'base64').toString('latin1');
