import { afterAll, beforeAll, expect, it } from 'vitest';
import { canaries } from '../../support/canaries.ts';
import { dashboardClient } from '../../support/dashboard-client.ts';
import { type DashboardWorld, models, startDashboardWorld, tokens } from '../../support/dashboard-world.ts';

let world: DashboardWorld;

beforeAll(async () => {
  world = await startDashboardWorld();
});
afterAll(() => world?.close());

/** Those that are known for what they are in any product; the last one is an operator's own. */
const known = canaries.slice(0, -1);

it('no secret shows on any page, whether a caller, a file, a vendor or an address told it', async () => {
  const { call, vendors, project, daemon } = world;
  await project.write('src/keys.ts', known.map(([text]) => `// ${text}\n`).join(''));
  for (const [text] of known) {
    vendors.google.script({ answer: 'Noted.' });
    const reply = await call('chat', {
      prompt: `Why is this refused? ${text}`,
      model: models.google,
      absolute_file_paths: ['src/keys.ts'],
    });
    expect(reply.isError, text).toBe(false);
    vendors.anthropic.script({
      fault: 'status',
      status: 400,
      body: { type: 'error', error: { type: 'invalid_request_error', message: text } },
    });
    await call('chat', { prompt: 'And this?', model: models.anthropic, allow_fallback: false });
    await call('chat', { prompt: 'Whose?', model: text });
  }
  const alice = dashboardClient(daemon.url, { token: tokens.alice });
  const live = await alice.page('/');
  const listed = await Promise.all(
    ['/threads', '/providers', '/spend?by=thread', '/spend?by=model', '/threads?q=refused'].map(alice.page),
  );
  const linked = [live, ...listed].flatMap(page =>
    [...page.matchAll(/href="(\/(?:calls|threads)\/[0-9a-f-]{36})"/g)].map(([, path = '']) => path),
  );
  const paths = [...new Set(linked)];
  expect(paths.length).toBeGreaterThan(40);
  const pages = await Promise.all(paths.map(alice.page));
  const files = await Promise.all(
    paths
      .filter(path => path.startsWith('/threads/'))
      .slice(0, 5)
      .map(async path => (await alice.get(`${path}/turns/1/files/0`)).text()),
  );
  const shown = [live, ...listed, ...pages, ...files].join('\n');
  expect(shown).toContain('[masked:');
  for (const [text, secret] of known) {
    const at = shown.indexOf(secret);
    const around = at < 0 ? '' : shown.slice(Math.max(0, at - 200), at + 50);
    expect(around, text).toBe('');
  }
});
