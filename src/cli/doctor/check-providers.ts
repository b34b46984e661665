import type { Product } from '../../app/app.ts';
import { isAppError } from '../../core/errors.ts';
import type { Finding } from './doctor-checks.ts';

type Team = Product['team'];
type Provider = Awaited<ReturnType<Team['providers']>>[number];

const patienceMs = 5_000;

/** Asks each configured provider for its models, all at once. */
export async function checkProviders(team: Team): Promise<Finding[]> {
  const providers = await team.providers();
  const configured = providers.filter(provider => provider.configured && !provider.onlyByPrefix);
  const others = providers.filter(provider => !provider.configured && provider.env.length > 0);
  const named = providers.filter(({ configured, onlyByPrefix }) => configured && onlyByPrefix).map(asked);
  const names = others.map(({ title, env }) => `${title} (${env.join(' or ')})`).join(', ');
  if (configured.length === 0) {
    return [
      {
        state: 'fail',
        what: 'providers',
        text: 'no model can be asked: no provider has a key',
        next: `Set one key in the environment or in .env of the data folder: ${names}. Or add --offline for built-in models.`,
      },
      ...named,
    ];
  }
  const found = [...(await Promise.all(configured.map(provider => ping(team, provider)))), ...named];
  return names === '' ? found : [...found, { state: 'note', what: 'not configured', text: names }];
}

/** Those that answer only where they are named help nobody who names none. */
function asked({ id, title, models }: Provider): Finding {
  return { state: 'note', what: title, text: `found; ask ${models.map(model => `${id}:${model.id}`).join(', ')}` };
}

async function ping(team: Team, { id, title, env, models }: Provider): Promise<Finding> {
  const what = title;
  const signal = AbortSignal.timeout(patienceMs);
  try {
    const listed = await Promise.race([team.ping(id, signal), rejection(signal)]);
    const answer = listed === undefined ? 'ready (it has no list to ask for)' : `answered, listing ${listed} models`;
    const left = await balance(team, id, signal);
    if (models.length > 0) return { state: 'ok', what, text: `${answer}; ${models.length} are known here${left}` };
    // Where no key was given nobody counts on it.
    if (env.length === 0) return { state: 'note', what, text: 'none may be asked with these settings' };
    return {
      state: 'warn',
      what,
      text: `${answer}, but none may be asked`,
      next: 'Look at the allow-lists, DENIED_MODELS, LOCAL_ONLY and OFFLINE.',
    };
  } catch (error) {
    if (signal.aborted) {
      const text = `no answer within ${patienceMs / 1_000} seconds`;
      return { state: 'fail', what, text, next: 'Check the network and HTTPS_PROXY, and the address if you set one.' };
    }
    if (!isAppError(error)) throw error;
    return { state: 'fail', what, text: error.message, next: nextAfter(error.details.class, env) };
  }
}

/** What the account has left, where the vendor tells. */
async function balance(team: Team, id: string, signal: AbortSignal): Promise<string> {
  try {
    const left = await Promise.race([team.balance(id, signal), rejection(signal)]);
    return left === undefined ? '' : `; ${left.available.toFixed(2)} are left on the account`;
  } catch {
    // Its models can be asked all the same.
    return '';
  }
}

/** The advice of an error speaks to who asked a question; here nobody did. */
function nextAfter(kind: string, env: readonly string[]): string {
  return kind === 'auth' && env.length > 0
    ? `The vendor refuses the key: correct ${env.join(' or ')}.`
    : 'Check the network, HTTPS_PROXY, NODE_EXTRA_CA_CERTS, and the address if you set one.';
}

/** A connection that does not listen to its signal must not keep us. */
function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  );
}
