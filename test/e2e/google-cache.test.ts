import { expect, it } from 'vitest';
import { isRunning, startSession } from '../support/mcp-session.ts';
import { vendorEnv } from '../support/product.ts';
import { tempProject } from '../support/temp-project.ts';
import { startGoogle } from '../support/vendors/start-google.ts';

it('removes its caches at Google when it is told to end (SIGTERM)', async () => {
  const [vendor, home] = await Promise.all([startGoogle(), tempProject()]);
  const project = await tempProject({ 'long.md': 'The gate stays shut while the key turns.\n'.repeat(400) });
  const env = { ...vendorEnv({ google: vendor.url }), DEFAULT_MODEL: 'gemini-2.5-flash' };
  const session = await startSession({ root: project.root, home: home.root, env });
  try {
    const first = await session.call('chat', { prompt: 'Read.', absolute_file_paths: [project.path('long.md')] });
    const { continuation_id } = first.continuation_offer;
    await session.call('chat', { prompt: 'And?', continuation_id });
    expect(vendor.caches.live()).toHaveLength(1);
    process.kill(session.pid, 'SIGTERM');
    await expect.poll(() => isRunning(session.pid)).toBe(false);
    expect(vendor.caches.live()).toEqual([]);
    expect(vendor.caches.log).toEqual(['create cachedContents/fake1', 'delete cachedContents/fake1']);
    expect([...vendor.violations, ...vendor.caches.refused]).toEqual([]);
  } finally {
    await session.close();
    await Promise.all([vendor.close(), project.dispose(), home.dispose()]);
  }
});
