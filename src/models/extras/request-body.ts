import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { isRecord } from '../../core/json.ts';
import type { Fetch } from './wire/vendor-fetch.ts';

/**
 * The body that a vendor's package would send for a call, without sending it: what is counted is then what would be asked.
 * `make` gets the function that stands for the network. Throws what the package throws when it makes none.
 */
export async function requestBody(
  make: (fetch: Fetch) => LanguageModelV4,
  call: LanguageModelV4CallOptions,
): Promise<Record<string, unknown>> {
  let body: unknown;
  const refuse: Fetch = (_address, init) => {
    body = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined;
    return Promise.reject(new Error('nothing is sent'));
  };
  try {
    await make(refuse).doStream(call);
  } catch (error) {
    if (isRecord(body)) return body;
    throw error;
  }
  throw new Error('the package sent something past its fetch');
}
