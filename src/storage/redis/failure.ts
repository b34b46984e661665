import { readFile } from 'node:fs/promises';
import { type AppError, asError, isAppError, storageError } from '../../core/errors.ts';

/** What a TLS connection trusts beside, or instead of, what this machine does. */
export async function readAuthorities(path: string): Promise<string> {
  try {
    const text = await readFile(path, 'utf8');
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
    throw new Error('it holds no certificate in PEM');
  } catch (error) {
    const why = asError(error).message;
    throw storageError('unavailable', `The certificates of REDIS_CA_FILE cannot be read: ${why}`, {
      cause: error,
      next: 'Let it name a file of certificates in PEM, as the authority that signed the certificate of the Redis gives it.',
    });
  }
}

/** What to do about a connection whose TLS failed, by its codes; the first that fits counts. */
const tlsAdvices: Readonly<Record<string, string>> = {
  'DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|CERT_UNTRUSTED':
    'Nobody whom this machine trusts signed its certificate: let REDIS_CA_FILE (or NODE_EXTRA_CA_CERTS) name the certificate of the authority that did.',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'Its certificate is for other names: let REDIS_URL name it by one of those, or give it a certificate for this one.',
  'CERT_HAS_EXPIRED|CERT_NOT_YET_VALID':
    'Its certificate is not valid now: renew it, or set the clock of this machine.',
  'ERR_SSL_.*ALERT.*':
    'It refuses this client: where it asks for certificates of its clients, set "tls-auth-clients no" there; a password lets them in.',
  '(ERR_SSL_|ERR_OSSL_|CERT_).*': 'Check the certificates of that server and of REDIS_CA_FILE.',
};

/** Undefined where it was something else. */
export function tlsAdvice(error: unknown): string | undefined {
  const code = codeOf(error);
  return Object.entries(tlsAdvices).find(([codes]) => new RegExp(`^(${codes})$`).test(code))?.[1];
}

/** The first code along the causes of an error. */
function codeOf(error: unknown): string {
  for (let at = error, steps = 0; at instanceof Error && steps < 5; steps += 1) {
    if ('code' in at && typeof at.code === 'string') return at.code;
    at = at instanceof AggregateError ? at.errors[0] : at.cause;
  }
  return '';
}

/** What is wrong with a server, as far as it makes a difference: a log says it once, and once when it is over. */
export type Trouble = 'unreachable' | 'full' | 'read_only' | 'refused';

/** There is no connection, or it brought no answer: whether the server did what it was told is not known then. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** The first word of an error that the server answered: `MOVED`, `OOM`, `READONLY`. */
export function replyCode(error: unknown): string {
  const [word = ''] = error instanceof Error ? error.message.split(' ', 1) : [];
  return /^[A-Z]+$/.test(word) ? word : '';
}

/** It is there, but can't serve yet or for now: the same command succeeds later. */
const passing = new Set(['LOADING', 'CLUSTERDOWN', 'MASTERDOWN', 'TRYAGAIN', 'BUSY', 'NOREPLICAS']);

const accessDenied = new Set(['NOAUTH', 'WRONGPASS', 'NOPERM']);

export function troubleOf(error: unknown): Trouble {
  if (error instanceof Unreachable) return 'unreachable';
  const code = replyCode(error);
  if (code === 'OOM') return 'full';
  if (code === 'READONLY') return 'read_only';
  return passing.has(code) ? 'unreachable' : 'refused';
}

/** Says in our words what Redis refused about a key, or that it can't be reached. Errors that are ours already stay as they are. */
export function redisFailure(error: unknown, address: string, key = ''): AppError {
  if (isAppError(error)) return error;
  // It was ours before it was what kept a connection from coming about.
  if (error instanceof Unreachable && isAppError(error.cause)) return error.cause;
  if (replyCode(error) === 'WRONGTYPE') {
    const what = `The key "${key}" in the Redis at ${address}, or one that belongs to it, holds another type of data than Polylogue stores.`;
    const next =
      'Check whether another program uses keys with the same prefix, and give each program a separate REDIS_PREFIX.';
    return storageError('corrupt', what, { cause: error, next });
  }
  const raw = asError(error).message;
  const advice = tlsAdvice(error);
  const access = accessDenied.has(replyCode(error))
    ? 'Correct the user and password in REDIS_URL, and let that user run scripts and all commands on its keys.'
    : undefined;
  const said: Readonly<Record<Trouble, readonly [what: string, next: string]>> = {
    full: [
      'has no memory left for new data (maxmemory).',
      'Raise its maxmemory, or delete threads; the next call works again without a restart.',
    ],
    read_only: [
      'takes no writes: it is a replica now.',
      'Try again in a moment; if it stays so, let REDIS_URL name the primary.',
    ],
    unreachable: [
      `${advice === undefined ? 'cannot serve now' : 'cannot be trusted'}: ${raw}`,
      advice ??
        access ??
        'Check that Redis is running and that REDIS_URL points to it (rediss:// for TLS, redis:// without). Polylogue keeps reconnecting, so the next call may work.',
    ],
    refused: [`refused a command: ${raw}`, access ?? 'Let REDIS_URL name a Redis 7 or newer, or a Valkey.'],
  };
  const trouble = troubleOf(error);
  const [what, next] = said[trouble];
  const retryable = trouble !== 'unreachable' || advice === undefined;
  const details = { cause: error, retryable, next };
  return storageError(trouble === 'full' ? 'storage_full' : 'unavailable', `The Redis at ${address} ${what}`, details);
}
