import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';

/** What stands at a daemon's address: one that takes calls, one that does not yet or no more, nothing, or something else. */
export type Readiness = 'ready' | 'not_ready' | 'absent' | 'other';

const answerMs = 3_000;

/** Asks a daemon whether it takes calls; never rejects. */
export function readinessOf(url: string): Promise<Readiness> {
  const { promise, resolve } = Promise.withResolvers<Readiness>();
  const request = url.startsWith('https:') ? secureRequest : plainRequest;
  const asked = request(`${url}/readyz`, { timeout: answerMs, headers: { connection: 'close' } }, response => {
    const { statusCode = 0 } = response;
    // What else it says nobody reads, however much it is.
    response.on('error', () => {}).destroy();
    resolve(statusCode === 200 ? 'ready' : statusCode === 503 || statusCode === 429 ? 'not_ready' : 'other');
  });
  asked.once('timeout', () => {
    resolve('not_ready');
    asked.destroy();
  });
  asked.once('error', () => resolve('absent'));
  asked.end();
  return promise;
}
