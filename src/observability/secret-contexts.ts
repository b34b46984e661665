import type { Span } from '../telemetry/spans.ts';

interface Context {
  kind: string;
  /** Ends with the secret, its only group. Every quantifier is bounded, or ends where nothing has to follow. */
  pattern: RegExp;
  accept?(value: string): boolean;
}

/** What names a secret in code, in settings and in JSON. */
const name =
  '(?:(?:api|access|secret|private|auth|client|account|signing|encryption|master|service|refresh|session|id)[_-]?(?:key|token|secret)|apikey|password|passwd|passphrase|pwd|secret|token|credential)';
/** Also within JSON that is a text of JSON. */
const quote = '\\\\{0,3}["\'`]';

/** Secrets that are known by what stands around them. */
const contexts: readonly Context[] = [
  {
    kind: 'bearer_token',
    pattern: /\b(?:[Bb]earer|BEARER)(?:[ \t]|%20){1,4}([\w.~+/-]{12,}={0,2})/g,
    accept: isCode,
  },
  {
    kind: 'authorization',
    pattern:
      /\bauthorization\\{0,3}["']?\s{0,3}[:=,]\s{0,3}\\{0,3}["']?(?:basic|token|bearer|apikey|digest)\s{1,3}([\w.~+/-]{8,}={0,2})/gi,
    accept: value => isCode(value) || value.endsWith('='),
  },
  {
    kind: 'api_key',
    pattern:
      /\b(?:x-|x-goog-)?(?:api-key|auth-token|access-token|private-token)\\{0,3}["']?\s{0,3}[:=,]\s{0,3}\\{0,3}["']?([\w+/-]{16,}={0,2})/gi,
    accept: looksRandom,
  },
  {
    kind: 'url_password',
    // A path into which an address was made has one slash less.
    pattern: /(?::\/|(?<=[A-Za-z]{2}):)\/[^\s/:@"'`<>\\]{0,128}:([^\s/"'`<>\\]{1,256})(?=@)/g,
    // Neither a template nor a placeholder, nor a port with a query that has an `@` in it.
    accept: value => !/^(?:[$%{*]|\[masked:|\d{1,5}[?#,])/.test(value),
  },
  {
    kind: 'url_secret',
    pattern:
      /[?&](?:api[_-]?key|key|access[_-]?token|token|auth|sig|signature|client_secret|password|x-amz-signature|x-amz-security-token)=([^&\s"'`<>#\\]{16,})/gi,
    accept: looksRandom,
  },
  {
    kind: 'aws_secret_key',
    pattern: /secret_?access_?key\\{0,3}["']?\s{0,3}[:=]\s{0,3}\\{0,3}["']?([A-Za-z0-9/+]{40})(?![\w/+=])/gi,
  },
  {
    kind: 'azure_key',
    pattern: /\b(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})/g,
  },
  {
    kind: 'webhook',
    pattern:
      /\b(?:hooks\.slack\.com\/(?:services|workflows)|discord(?:app)?\.com\/api\/webhooks|outlook\.office\.com\/webhook)\/([\w/@-]{20,})/g,
  },
  {
    kind: 'secret',
    pattern: new RegExp(
      `${name}(?:${quote})?\\s{0,4}(?:=>|:=|[:=])\\s{0,4}${quote}([^"'\`\\s\\\\{}<>()$[\\]]{16,512})(?=\\\\{0,3}["'\`])`,
      'gi',
    ),
    accept: looksRandom,
  },
  {
    kind: 'secret',
    pattern: /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)=([\w+/.~!@%^*-]{16,}={0,2})/g,
    accept: looksRandom,
  },
];

/** One finder a context, so that a long text can be gone through with pauses. */
export const contextFinders: readonly ((text: string) => Span[])[] = contexts.map(({ kind, pattern, accept }) =>
  finderOf(kind, pattern, accept),
);

function finderOf(kind: string, pattern: RegExp, accept: Context['accept']) {
  return (text: string): Span[] => {
    const spans: Span[] = [];
    for (const { 0: whole, 1: captured = '', index } of text.matchAll(pattern)) {
      const start = index + whole.length - captured.length;
      // What ends a sentence is not part of the secret: it would get another placeholder there than elsewhere.
      const value = captured.replace(/[.,;]$/, '');
      if (value !== '' && (accept?.(value) ?? true)) {
        spans.push({ start, end: start + value.length, kind, rank: 2 });
      }
    }
    return spans;
  };
}

/** A word with digits in it, or a random one; not `Bearer AuthenticationScheme`. */
function isCode(value: string): boolean {
  const digits = value.match(/\d/g)?.length ?? 0;
  return digits >= 3 || (digits >= 1 && value.length >= 16) || (value.length >= 16 && changeRate(value) >= 0.3);
}

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Whether a text is a machine's choice and not a word, a path, a date, a UUID or a template. */
function looksRandom(value: string): boolean {
  const bare = value.slice(0, 512).replace(/[^A-Za-z0-9]/g, '');
  const letters = bare.match(/[A-Za-z]/g)?.length ?? 0;
  const enough = bare.length >= 16 && letters >= 4 && bare.length - letters >= 2;
  return enough && !uuid.test(value) && changeRate(bare) >= 0.3 && entropy(bare) >= 3;
}

/** How often capitals, small letters and digits take turns: about half the time in random text, seldom in names. */
function changeRate(text: string): number {
  let changes = 0;
  for (let at = 1; at < text.length; at++) if (classOf(text, at) !== classOf(text, at - 1)) changes++;
  return changes / Math.max(1, text.length - 1);
}

function classOf(text: string, at: number): 'digit' | 'capital' | 'other' {
  const code = text.charCodeAt(at);
  if (code >= 48 && code <= 57) return 'digit';
  return code >= 65 && code <= 90 ? 'capital' : 'other';
}

/** Bits a character. */
function entropy(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}
