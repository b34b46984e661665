import type { Fault } from '../../core/errors.ts';
import { isRecord, parsedJson, recordIn, recordsIn, textIn } from '../../core/json.ts';
import { cutMiddle } from '../../core/text.ts';

/** Characters of an explanation that are read: the rules go through them many times. */
const maxRead = 10_000;

/** What can be read from a failed call, whatever threw it. */
export interface VendorError {
  /** Name of the thrown error, such as `AI_APICallError`; empty for what was no error. */
  name: string;
  /** HTTP status, where the vendor answered. */
  status?: number;
  /** The machine words of the answer (codes, types, reasons) in lower case, with a space between. */
  words: string;
  /** What it said to people, unmasked. */
  said: string;
  /** The same, at most `maxRead` long. */
  message: string;
  /** Response headers, names in lower case. */
  headers: Readonly<Record<string, string>>;
  /** The parsed body; undefined when it is no JSON. */
  body: unknown;
  /** Code of the network failure below it, such as `ECONNRESET`. */
  systemCode?: string;
}

/** The numbers that vendors put where others have words, by provider; the status alone misleads. */
const numbered: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = {
  zhipu: {
    authentication: [1000, 1001, 1002, 1003, 1004, 1110, 1111, 1112, 1121],
    insufficient_balance: [1113],
    not_found: [1211],
    permission: [1220, 1311],
    context_length: [1261],
    content_filter: [1301],
    rate_limit: [1302, 1303, 1305],
    insufficient_quota: [1304, 1308, 1309, 1310, 1313],
  },
};

/** The word for a vendor's number among its words. */
function wordFor(words: readonly string[], provider: string): string[] {
  const meanings = Object.entries(numbered[provider] ?? {});
  return meanings.flatMap(([word, numbers]) => (numbers.some(number => words.includes(`${number}`)) ? [word] : []));
}

/**
 * Reads AI SDK errors (by shape, so that no vendor package is loaded for it), error parts of a stream, bodies of all
 * vendors' kinds (`{error: {…}}`, `{error: "…"}`, `[{error}]`, `{detail}`, HTML, text, a bare string) and network errors.
 */
export function readVendorError(error: unknown, provider = ''): VendorError {
  const none = 'no reason was given';
  if (!isRecord(error)) {
    const said = textIn(error) || none;
    return { name: '', words: '', said, message: cutMiddle(said, maxRead), headers: {}, body: undefined };
  }
  const text = textIn(error.responseBody);
  // In a stream it is the vendor's own object, or a chunk that the adapter could not read.
  const body = parsedJson(text) ?? error.data ?? error.value ?? (error instanceof Error ? undefined : error);
  const words = [error, ...errorObjects(body)].flatMap(wordsOf);
  const said = firstText(messageOf(body), readable(text), ownMessage(error)) ?? none;
  return {
    name: error instanceof Error ? error.name : '',
    status: statusOf(error),
    // Some write their codes in camel case.
    words: cutMiddle([...words, ...wordFor(words, provider)].join(' '), maxRead)
      .replace(/([a-z])([A-Z])/g, '$1_$2')
      .toLowerCase(),
    said,
    message: cutMiddle(said, maxRead),
    headers: headersOf(error.responseHeaders),
    body,
    systemCode: systemCodeOf(error),
  };
}

/** Node's fetch and the vendors' packages say why only in the cause. */
function ownMessage(error: Record<string, unknown>): string | undefined {
  const { cause } = error;
  const says = !/^(fetch failed|terminated|Failed to process successful response)$/.test(textIn(error.message));
  if (!says && isRecord(cause) && textIn(cause.message) !== '') return ownMessage(cause);
  // What follows is the chunk itself: a piece of an answer, whose words mean nothing here.
  return textIn(error.message).split(': Value: ')[0];
}

const firstText = (...texts: unknown[]): string | undefined =>
  texts.map(text => textIn(text).trim()).find(text => text !== '');

/** A page or a plain text as one line without its markup. */
function readable(text: string): string {
  if (parsedJson(text) !== undefined) return '';
  return text
    .slice(0, 20_000)
    .replace(/<(script|style)[\s>][\s\S]*?<\/\1>/gi, ' ')
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ');
}

function statusOf(error: Record<string, unknown>): number | undefined {
  const status = error.statusCode ?? error.status ?? error.code;
  const number = typeof status === 'string' && /^\d{3}$/.test(status) ? Number(status) : status;
  return typeof number === 'number' && number >= 100 && number <= 599 ? number : undefined;
}

/** The object itself and what it wraps under the names that vendors use. */
function errorObjects(body: unknown): Record<string, unknown>[] {
  const first = Array.isArray(body) ? body[0] : body;
  if (!isRecord(first)) return [];
  const { innererror, error } = recordIn(first.error);
  const inner = [recordIn(first.response).error, innererror, error, first.message, recordsIn(first.errors)[0]];
  return [first.error, ...inner, first.base_resp, first].filter(isRecord);
}

function wordsOf(error: Record<string, unknown>): string[] {
  const details = [error.details].flat().filter(isRecord);
  const reasons = details.flatMap(detail => [detail.reason, detail.error_code]);
  return [error.code, error.type, error.status, ...reasons].filter(word => typeof word === 'string');
}

export function messageOf(body: unknown): string | undefined {
  if (typeof body === 'string') return body;
  for (const error of errorObjects(body)) {
    const { message, error: name, detail, status_msg: status, msg, error_msg, title } = error;
    // `detail: [{ loc, msg }]`, as servers written with FastAPI answer.
    const validation = recordsIn(detail).map(each => textIn(each.msg));
    const said = firstText(message, name, detail, status, validation.join('; '), msg, error_msg, title);
    if (said !== undefined) return said;
  }
  return undefined;
}

function headersOf(headers: unknown): Record<string, string> {
  if (!isRecord(headers)) return {};
  const texts = Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return Object.fromEntries(texts.map(([name, value]) => [name.toLowerCase(), value]));
}

function systemCodeOf(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < 8 && isRecord(current); depth++) {
    // Node's client has codes for these, and leaves them out.
    const code = current.name === 'HTTPParserError' ? 'HPE_INVALID' : current.code;
    if (typeof code === 'string' && /^(E[A-Z]{3,}|UND_ERR|(CERT|ERR|DEPTH|SELF|UNABLE|HPE|Z)_)/.test(code)) return code;
    const several = Array.isArray(current.errors) ? current.errors[0] : undefined;
    current = current.cause ?? several;
  }
  return undefined;
}

/** What kind of failure it was; decides whether another attempt or another candidate makes sense. */
export type FailureClass =
  | 'quota'
  | 'rate_limit'
  | 'auth'
  | 'balance'
  | 'network'
  | 'timeout'
  | 'content_filter'
  | 'context_length'
  | 'bad_request'
  | 'bad_upstream'
  | 'unknown';

export interface Verdict {
  class: FailureClass;
  /** The very same request would fail again, whatever its class says. */
  final?: boolean;
  /** What to do, where the class alone does not tell it. */
  next?: string;
  /** A limit of the account was in the way, which other providers do not have. */
  elsewhere?: boolean;
  /** The vendor does not have the model, or no longer; it may have others. */
  noModel?: boolean;
}

/** Whether the very same request may succeed if it is sent again. */
export const isRetryable = ({ class: kind, final }: Verdict): boolean =>
  ['rate_limit', 'network', 'timeout', 'bad_upstream'].includes(kind) && final !== true;

interface Rule extends Verdict {
  status?: readonly number[];
  /** Matches the vendor's machine words. */
  words?: RegExp;
  /** Match what it said to people: some vendors answer 400 for all. Not looked at when the status is one of `unless`. */
  messages?: readonly RegExp[];
  unless?: readonly number[];
}

/** Google's way to say that a plan does not have a model, for which it names a wait all the same. */
const noQuota = /\blimit: 0\b/;

/** In this order, because a later rule would take what an earlier one knows better. */
const rules: readonly Rule[] = [
  // What it says quotes a value of the request, whose words mean nothing here.
  { class: 'bad_request', words: /\b(invalid_(value|type|function_parameters)|json_validate_failed)\b/ },
  {
    class: 'context_length',
    elsewhere: true,
    next: "Send fewer or smaller files, raise the account's limit of tokens per minute at the provider, or choose a model from another provider.",
    messages: [/request too large\b.{0,300}\bper (min|day)/is],
  },
  {
    class: 'context_length',
    status: [413],
    words: /context_?(length|window|size|exceeded)|(request|payload)_too_large|truncate_prompt/,
    messages: [
      /\b(prompt|input|context|conversation|message)s?\b( \w+){0,3} too (long|large)\b/i,
      /\bcontext (window|length|size|limit)\b/i,
      /\bmax(imum)? (context|prompt|model|input|sequence|allowed input) length\b|too large for model\b/i,
      /\b(input|prompt|total|requested)[ _]tokens?\b.{0,60}\b(exceed|must be)|\btoken count\b.{0,60}\bexceeds/i,
      /model token limit|max_seq_len|max_new_tokens\W{0,3}must be|\bn_keep\b|too many (input )?tokens/i,
      /reduce the length of the (messages|prompt)|range of input length|prompt exceeds max|payload size exceeds/i,
      /string too long.{0,60} \d{6}|max input characters|ContextWindowExceeded/i,
      /超长|长度超|超过.{0,12}长度/,
    ],
    unless: [429],
  },
  {
    class: 'content_filter',
    words:
      /(content|prohibited|risk)_(filter|policy|content|detection)|contentfilter|moderation|safety|data_inspection|sensitive_content|policy_?violation|hooks_failed/,
    messages: [
      /content (management |filtering )?policy|safety system|flagged (as|for)|inappropriate content|new_sensitive/i,
      /violat\w+ (\w+ ){0,2}(usage|content) (guideline|polic)|content exists risk|considered high risk/i,
      /sensitive (content|information)|for safety reasons|ContentPolicyViolation|violated guardrail|敏感/i,
    ],
    unless: [401, 503],
  },
  // OpenAI calls both of these a quota as well.
  { class: 'balance', words: /credit_balance|spend_limit/ },
  {
    class: 'quota',
    words:
      /insufficient_(user_)?quota|quota_exceeded|exceeded_current_quota|usage_limit|budget_exceeded|free_tier_only/,
    messages: [
      /exceeded your current quota|(usage|monthly) limit|key limit exceeded|额度(不足|已用尽)/i,
      /\bbudget\b.{0,60}\bexceeded|exceeded\w*budget/i,
      noQuota,
    ],
  },
  {
    class: 'balance',
    status: [402],
    words: /insufficient_balance|insufficient_credits|billing|payment_required|arrearage|overdue/,
    messages: [
      /credit balance|balance is (insufficient|too low)|insufficient (account )?(balance|credits?|funds)/i,
      /spend(ing)? (limit|cap)\b|(all|any) (available )?credits\b|credits? (is|are) (depleted|required)/i,
      /overdue balance|余额不足|欠费/i,
    ],
  },
  {
    class: 'auth',
    next: 'Check at the provider what this account may use (its region, its billing, its verification), or choose a model from another provider.',
    words: /unsupported_country|region_(is_)?not_supported/,
    messages: [
      /\b(location|country|region|territory)\b.{0,40}\bnot (supported|available|allowed)|not available in your (country|region|location)/i,
      /must be verified to|^request not allowed$|\bnot available (to|for) (your|this|organi[sz]ations)\b/i,
    ],
  },
  {
    class: 'bad_request',
    noModel: true,
    words: /model_(not_found|decommissioned|not_exist)|\binvalid_model\b|\bnot_found\b/,
    messages: [
      /\bmodel\b.{0,80}\b(decommissioned|not exist|not found|no longer (available|supported))|模型不存在/is,
      /\b(unknown|no such) model\b|\b(not a valid|invalid) model (id|name|identifier|code)\b/i,
    ],
    unless: [401, 403, 404, 429],
  },
  {
    class: 'auth',
    status: [401, 403],
    words: /authentication|invalid_api_key|api_key_invalid|unauthenticated|unauthorized|permission/,
    messages: [
      /(invalid|incorrect|missing|expired|no|valid) (x-)?api[ -]?key|api[ -]?key (is )?(not valid|invalid|missing|expired)/i,
      /organization has been (disabled|restricted)/i,
    ],
  },
  // The proxy's own answer, not the vendor's.
  { class: 'network', final: true, status: [407] },
  { class: 'rate_limit', status: [429], words: /rate_limit|too_many_requests|throttl/ },
  { class: 'bad_upstream', words: /overloaded|unavailable/ },
  // Ollama, of a model that this machine or its graphics card cannot load.
  {
    class: 'bad_upstream',
    final: true,
    next: 'Free memory on the machine of the server, set a smaller context window (OLLAMA_NUM_CTX), or choose a smaller model.',
    messages: [/\bmodel requires more (system )?memory\b/i],
  },
  { class: 'timeout', status: [408, 504], words: /timeout|deadline_exceeded/ },
  // The vendor's own trouble, a lost race there, or a request that came too early.
  { class: 'bad_upstream', status: [409, 425, 500, 502, 503, 520, 522, 524, 529] },
  { class: 'bad_request', words: /invalid_request|invalid_argument|bad_request|not_found|unsupported/ },
];

/** This machine has none left for another connection: the vendor was not even called. */
const usedUp = /^(EMFILE|ENFILE|ENOBUFS|ENOMEM)$/;

/** What the code of a failed connection means; the first that matches counts. */
const networkRules: readonly (Verdict & { codes: RegExp })[] = [
  { class: 'timeout', codes: /^(ETIMEDOUT|UND_ERR_(HEADERS|BODY|CONNECT)_TIMEOUT)$/ },
  // What came is no HTTP, or is not compressed as it says.
  { class: 'bad_upstream', codes: /^(HPE|Z)_/ },
  {
    class: 'network',
    final: true,
    next: 'Set NODE_EXTRA_CA_CERTS to a PEM file with the certificate authority of the proxy or server, and restart.',
    codes: /^(CERT_(UNTRUSTED|SIGNATURE)|DEPTH_|SELF_|UNABLE_)/,
  },
  {
    class: 'network',
    next: "Retry later. This machine has no files or memory left for a connection: raise the server's limit of open files (ulimit -n), or lower MAX_CONCURRENT_CALLS.",
    codes: usedUp,
  },
  // The name or the certificate is wrong.
  { class: 'network', final: true, codes: /^(ENOTFOUND|CERT_|ERR_TLS|EPROTO|ERR_SSL|ERR_INVALID)/ },
];

/** The adapters' own words for an answer that they could not read. */
const unreadable =
  /^(AI_(JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody|NoContentGenerated)Error|Error)$/;

const refusedHere = /^AI_(UnsupportedFunctionality|InvalidPrompt|InvalidArgument|LoadAPIKey|LoadSetting)Error$/;

/** Decides once, for the whole product, what a failure is and whether to try again. */
export function classify(error: VendorError, hasRetryAfter: boolean): Verdict {
  const { status, systemCode } = error;
  const answered = status !== undefined && status >= 400;
  if (!answered && systemCode !== undefined)
    return networkRules.find(({ codes }) => codes.test(systemCode)) ?? { class: 'network' };
  const rule = rules.find(candidate => matches(candidate, error));
  // Google says "quota" for limits of a minute too, and OpenRouter "payment" for what runs there now; then they name the wait.
  const isLimit = status === (rule?.class === 'quota' ? 429 : 402);
  const waits = isLimit && !/insufficient_quota/.test(error.words) && !noQuota.test(error.message);
  if (waits && hasRetryAfter) return { class: 'rate_limit' };
  if (rule) return rule;
  if (answered) return { class: status >= 500 ? 'bad_upstream' : 'bad_request' };
  if (error.name === 'TimeoutError') return { class: 'timeout' };
  if (refusedHere.test(error.name)) return { class: 'bad_request' };
  // An answer that was no answer: a success that could not be read, or an error inside of a stream.
  const upstream = status !== undefined || error.words !== '' || unreadable.test(error.name);
  return { class: upstream ? 'bad_upstream' : 'unknown' };
}

function matches(rule: Rule, { status, words, message }: VendorError): boolean {
  if (status !== undefined && rule.status?.includes(status)) return true;
  if (status !== undefined && rule.unless?.includes(status)) return false;
  return rule.words?.test(words) === true || rule.messages?.some(said => said.test(message)) === true;
}

/** The way to the vendor was not even found or opened: name, address, certificate. */
const noWay =
  /^(ENOTFOUND|EAI_|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EHOSTDOWN|ETIMEDOUT|EADDRNOTAVAIL|UND_ERR_CONNECT|CERT_|ERR_TLS|ERR_SSL|DEPTH_|SELF_|UNABLE_|EPROTO)/;

const ofAccount = /\b(account|organi[sz]ation|workspace|project|team)\b/i;

const ofModel = /\bmodel\b/i;

/** What a vendor's failure tells of the vendor: which breaker counts it. Undefined when the request was at fault. */
export function faultOfVendor(vendor: VendorError, verdict: Verdict, model: string): Fault | undefined {
  const scope = scopeOf(vendor, verdict, model);
  // A page instead of a vendor's answer is something on the way, such as a proxy; it says nothing about the key.
  const lasting = verdict.class === 'auth' && (vendor.status === 401 || vendor.body !== undefined);
  return scope && { scope, lasting };
}

function scopeOf({ status, systemCode = '', message }: VendorError, { class: kind, noModel }: Verdict, model: string) {
  const namesModel = ofModel.test(message) || message.toLowerCase().includes(model.toLowerCase());
  switch (kind) {
    case 'network':
    case 'timeout':
      if (usedUp.test(systemCode)) return undefined;
      return status === undefined && noWay.test(systemCode) ? 'key' : 'model';
    case 'auth':
      return status !== 401 && namesModel ? 'key_model' : 'key';
    case 'balance':
      return 'key';
    case 'quota':
      return noQuota.test(message) && namesModel ? 'key_model' : 'account';
    case 'rate_limit':
      return ofAccount.test(message) && !namesModel ? 'account' : 'key_model';
    case 'bad_upstream':
      return 'model';
    default:
      return noModel ? 'key_model' : undefined;
  }
}
