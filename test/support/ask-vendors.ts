import type { FakeVendor } from './vendors/fake-vendor.ts';
import { startAnthropic } from './vendors/start-anthropic.ts';
import { startOpenAi } from './vendors/start-open-ai.ts';

// biome-ignore lint/suspicious/noExplicitAny: the wire as it comes, read by tests alone
export type Wire = Record<string, any>;

export const askHeaders = {
  'content-type': 'application/json',
  authorization: 'Bearer test-key',
  'x-api-key': 'test-key',
  'anthropic-version': '2023-06-01',
};

/** Both vendors with a sound request to each of their dialects, of which a test changes what it is about. */
export interface Asked {
  openAi: FakeVendor;
  anthropic: FakeVendor;
  responses(change?: Wire, signal?: AbortSignal): Promise<Response>;
  chat(change?: Wire): Promise<Response>;
  claude(change?: Wire): Promise<Response>;
  close(): Promise<void>;
}

export async function askVendors(): Promise<Asked> {
  const [openAi, anthropic] = await Promise.all([startOpenAi(), startAnthropic()]);
  const send = (vendor: FakeVendor, path: string, body: Wire, signal?: AbortSignal) =>
    fetch(`${vendor.url}${path}`, {
      method: 'POST',
      headers: askHeaders,
      body: JSON.stringify(body),
      signal: signal ?? null,
    });
  const messages = [{ role: 'user', content: 'Hi' }];
  return {
    openAi,
    anthropic,
    responses: (change, signal) => send(openAi, '/responses', { model: 'gpt-5', input: 'Hi', ...change }, signal),
    chat: change => send(openAi, '/chat/completions', { model: 'gpt-5', messages, ...change }),
    claude: change =>
      send(anthropic, '/messages', { model: 'claude-sonnet-4-5', max_tokens: 4_000, messages, ...change }),
    close: async () => {
      await Promise.all([openAi.close(), anthropic.close()]);
    },
  };
}
