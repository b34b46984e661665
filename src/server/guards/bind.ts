import { configError } from '../../core/errors.ts';
import { isLoopback } from './loopback.ts';

/** Throws where everybody on a network could call without showing who he is. */
export function checkBind({ host, tokens }: { host: string; tokens: number }): void {
  if (tokens > 0 || isLoopback(host)) return;
  throw configError(`Listening on ${JSON.stringify(host)} lets other machines in, and no token is set.`, {
    next: 'Set POLYLOGUE_TOKEN (or a file of tokens, POLYLOGUE_TOKENS_FILE), or listen on 127.0.0.1.',
  });
}
