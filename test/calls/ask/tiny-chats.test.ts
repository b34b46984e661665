import { expect, it } from 'vitest';
import { testProduct, vendorEnv } from '../../support/product.ts';
import { tempProject } from '../../support/temp-project.ts';
import type { RecordedRequest } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const calls = 16;
const question = (n: number) => `Remember number ${n}: ${n * 37}.`;
const answer = 'Noted.';
/** `[turn 31 · chat] [the answer above: chat by openai:gpt-5]`, separators and role words. */
const aroundTurn = 100;

it('sixteen tiny chats grow by the new turn alone, and the last one sees them all', async () => {
  const [vendor, project] = await Promise.all([startOpenAi(), tempProject()]);
  const env = { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5' };
  const polylogue = await testProduct({ root: project.root, env });
  vendor.byDefault({ answer });
  try {
    let continuation_id: string | undefined;
    for (let n = 1; n <= calls; n++) {
      const reply = await polylogue.call('chat', { prompt: question(n), ...(continuation_id && { continuation_id }) });
      expect(reply.isError).toBe(false);
      continuation_id = reply.continuation_offer.continuation_id;
    }
    const sent = vendor.requests.map(({ messages }: RecordedRequest) =>
      messages.reduce((sum, { text }) => sum + text.length, 0),
    );
    const growth = sent.slice(1).map((chars, at) => chars - sent[at]!);
    console.log(`characters of ${calls} tiny chats: ${sent.join(' ')}; each new turn: ${growth.join(' ')}`);
    for (const [at, chars] of growth.entries()) {
      expect(chars).toBeLessThanOrEqual(answer.length + question(at + 2).length + aroundTurn);
    }
    const last = vendor.requests
      .at(-1)!
      .messages.map(({ text }) => text)
      .join('\n');
    for (let n = 1; n <= calls; n++) expect(last.split(question(n)).length - 1).toBe(1);
    expect(last.split(answer).length - 1).toBe(calls - 1);
    const thread = await polylogue.call('threads', { action: 'read', continuation_id });
    expect(thread.turns).toBe(2 * calls);
    expect(vendor.violations).toEqual([]);
  } finally {
    await polylogue.close();
    await Promise.all([vendor.close(), project.dispose()]);
  }
});
