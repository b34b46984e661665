import type { VendorError } from './vendor-error.ts';

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
  /** Whether the very same request may succeed if it is sent again. */
  retryable: boolean;
}

interface Rule {
  class: FailureClass;
  retryable: boolean;
  status?: readonly number[];
  /** Matches the vendor's machine words. */
  words?: RegExp;
  /** Matches what it said to people: some vendors answer 400 for all. Not looked at when the status is one of `unless`. */
  message?: RegExp;
  unless?: readonly number[];
}

/** In this order, because a later rule would take what an earlier one knows better. */
const rules: readonly Rule[] = [
  {
    class: 'context_length',
    retryable: false,
    status: [413],
    words: /context_length|context_window|request_too_large/,
    message:
      /maximum (context|prompt) length|context window|prompt is too long|input (is )?too long|too many (input )?tokens|token count .{0,40}exceeds/i,
    unless: [429],
  },
  {
    class: 'content_filter',
    retryable: false,
    words: /content_filter|content_policy|contentfilter|moderation|safety|prohibited_content/,
    message: /content (management |filtering )?policy|safety system|flagged (as|for)/i,
  },
  {
    class: 'quota',
    retryable: false,
    words: /insufficient_quota|quota_exceeded/,
    message: /exceeded your current quota|monthly (usage )?limit|usage limit/i,
  },
  {
    class: 'balance',
    retryable: false,
    status: [402],
    words: /insufficient_balance|insufficient_credits|billing|payment_required/,
    message: /credit balance|insufficient (account )?(balance|credits?|funds)/i,
  },
  {
    class: 'auth',
    retryable: false,
    status: [401, 403],
    words: /authentication|invalid_api_key|api_key_invalid|unauthenticated|unauthorized|permission/,
    message:
      /(invalid|incorrect|missing|expired|no|valid) (x-)?api[ -]?key|api[ -]?key (is )?(not valid|invalid|missing|expired)/i,
  },
  { class: 'rate_limit', retryable: true, status: [429], words: /rate_limit|too_many_requests|throttl/ },
  { class: 'bad_upstream', retryable: true, words: /overloaded|unavailable/ },
  { class: 'timeout', retryable: true, status: [408, 504], words: /timeout|deadline_exceeded/ },
  // The vendor's own trouble, a lost race there, or a request that came too early.
  { class: 'bad_upstream', retryable: true, status: [409, 425, 500, 502, 503, 520, 522, 524, 529] },
  {
    class: 'bad_request',
    retryable: false,
    words: /invalid_request|invalid_argument|bad_request|not_found|unsupported/,
  },
];

/** Codes of what another attempt will not mend: the name or the certificate is wrong. */
const lastingNetworkCode = /^(ENOTFOUND|CERT_|ERR_TLS|DEPTH_|SELF_|UNABLE_|EPROTO|ERR_SSL|ERR_INVALID)/;
const timeoutCode = /^(ETIMEDOUT|UND_ERR_(HEADERS|BODY|CONNECT)_TIMEOUT)$/;
/** The adapters' own words for an answer that they could not read. */
const unreadable =
  /^(AI_(JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody|NoContentGenerated)Error|Error)$/;
const refusedHere = /^AI_(UnsupportedFunctionality|InvalidPrompt|InvalidArgument|LoadAPIKey|LoadSetting)Error$/;

/** Decides once, for the whole product, what a failure is and whether to try again. */
export function classify(error: VendorError, hasRetryAfter: boolean): Verdict {
  const { status, systemCode } = error;
  const answered = status !== undefined && status >= 400;
  if (!answered && systemCode !== undefined) return networkVerdict(systemCode);
  const rule = rules.find(candidate => matches(candidate, error));
  // Google says "quota" for limits of a minute too, but then it names the wait.
  if (rule?.class === 'quota' && hasRetryAfter && status === 429 && !/insufficient_quota/.test(error.words)) {
    return { class: 'rate_limit', retryable: true };
  }
  if (rule) return { class: rule.class, retryable: rule.retryable };
  if (answered)
    return status >= 500 ? { class: 'bad_upstream', retryable: true } : { class: 'bad_request', retryable: false };
  if (error.name === 'TimeoutError') return { class: 'timeout', retryable: true };
  if (refusedHere.test(error.name)) return { class: 'bad_request', retryable: false };
  // An answer that was no answer: a success that could not be read, or an error inside of a stream.
  const upstream = status !== undefined || error.words !== '' || unreadable.test(error.name);
  return upstream ? { class: 'bad_upstream', retryable: true } : { class: 'unknown', retryable: false };
}

function matches(rule: Rule, { status, words, message }: VendorError): boolean {
  if (status !== undefined && rule.status?.includes(status)) return true;
  if (status !== undefined && rule.unless?.includes(status)) return false;
  return rule.words?.test(words) === true || rule.message?.test(message) === true;
}

function networkVerdict(code: string): Verdict {
  if (timeoutCode.test(code)) return { class: 'timeout', retryable: true };
  return { class: 'network', retryable: !lastingNetworkCode.test(code) };
}
