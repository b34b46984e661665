import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestProduct, testProduct } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';

let project: TempProject;
let polylogue: TestProduct;
let hers: string;

const mallory = { owner: 'mallory' };
const threads = (args: Record<string, unknown>, options = {}) => polylogue.call('threads', args, options);

beforeAll(async () => {
  project = await tempProject();
  polylogue = await testProduct({ root: project.root, env: { POLYLOGUE_OFFLINE: 'true' } });
  const asked = await polylogue.call('chat', { prompt: 'The zebra is secret.', model: 'echo-east' });
  expect(asked.isError, JSON.stringify(asked.error)).toBe(false);
  hers = asked.continuation_offer.continuation_id;
});

afterAll(async () => {
  await polylogue.close();
  await project.dispose();
});

it.each(['read', 'sent', 'fork', 'delete'])('another owner’s thread is not found by %s', async action => {
  const reply = await threads({ action, continuation_id: hers, confirm: true }, mallory);
  expect(reply).toMatchObject({ isError: true, error: { code: 'THREAD_NOT_FOUND' } });
  expect(JSON.stringify(reply)).not.toContain('zebra');
});

it('another owner’s thread is neither gone on with nor the last one', async () => {
  for (const continuation_id of [hers, 'last']) {
    const reply = await polylogue.call('chat', { prompt: 'And?', model: 'echo-east', continuation_id }, mallory);
    expect(reply).toMatchObject({ isError: true, error: { code: 'THREAD_NOT_FOUND' } });
  }
});

it('another owner’s threads are neither listed, found by search, nor deleted with all', async () => {
  for (const everywhere of [false, true]) {
    expect((await threads({ action: 'list', everywhere }, mallory)).threads).toEqual([]);
    expect((await threads({ action: 'search', query: 'zebra', everywhere }, mallory)).hits).toEqual([]);
  }
  expect((await threads({ action: 'delete_all', confirm: true }, mallory)).deleted).toEqual([]);
  expect((await threads({ action: 'search', query: 'zebra' })).hits).toHaveLength(1);
});

it('a search made of the search language’s own signs is words, and harmless', async () => {
  for (const query of [
    '" OR 1=1 NEAR(',
    'zebra*',
    'words:zebra',
    '\u0000 \ud800',
    '(((',
    '-zebra',
    "'; DROP TABLE turns",
  ]) {
    const reply = await threads({ action: 'search', query });
    expect(reply.isError, `${query}: ${JSON.stringify(reply.error)}`).toBe(false);
  }
  expect((await threads({ action: 'read', continuation_id: hers })).isError).toBe(false);
});
