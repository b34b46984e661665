import { readFile } from 'node:fs/promises';
import { storageError } from '../../core/errors.ts';

/** What a TLS connection trusts beside, or instead of, what this machine does. */
export async function readAuthorities(path: string): Promise<string> {
  try {
    const text = await readFile(path, 'utf8');
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
    throw new Error('it holds no certificate in PEM');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw storageError('unavailable', `The certificates of REDIS_CA_FILE can't be read: ${why}`, {
      cause: error,
      next: 'Let it name a file of certificates in PEM, as the authority that signed the certificate of the Redis gives it.',
    });
  }
}

const untrusted = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_UNTRUSTED',
];

/** What to do about a connection whose TLS failed; undefined where it was something else. */
export function tlsAdvice(error: unknown): string | undefined {
  const code = codeOf(error);
  if (untrusted.includes(code)) {
    return 'Nobody whom this machine trusts signed its certificate: let REDIS_CA_FILE (or NODE_EXTRA_CA_CERTS) name the certificate of the authority that did.';
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return 'Its certificate is for other names: let REDIS_URL name it by one of those, or give it a certificate for this one.';
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return 'Its certificate is not valid now: renew it, or set the clock of this machine.';
  }
  if (/^ERR_SSL_.*ALERT/.test(code)) {
    return 'It refuses this client: where it asks for certificates of its clients, set "tls-auth-clients no" there; a password lets them in.';
  }
  return /^(ERR_SSL_|ERR_OSSL_|CERT_)/.test(code)
    ? 'Check the certificates of that server and of REDIS_CA_FILE.'
    : undefined;
}

/** The first code along the causes of an error. */
function codeOf(error: unknown): string {
  for (let at = error, steps = 0; at instanceof Error && steps < 5; steps += 1) {
    if ('code' in at && typeof at.code === 'string') return at.code;
    at = at instanceof AggregateError ? at.errors[0] : at.cause;
  }
  return '';
}
