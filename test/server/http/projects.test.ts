import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDaemon, testDaemon } from '../../support/daemon.ts';
import type { Document } from '../../support/product.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

const token = 'the-token-of-the-operator';
let project: TempProject;
let other: TempProject;
const daemons: TestDaemon[] = [];

beforeAll(async () => {
  [project, other] = await Promise.all([tempProject(), tempProject({ 'a.md': 'here\n' })]);
});
afterAll(() => Promise.all([...daemons.map(daemon => daemon.close()), project.dispose(), other.dispose()]));

async function start(env: Record<string, string>): Promise<TestDaemon> {
  const tokens = [{ name: 'guest', token: 'the-token-of-the-guest' }];
  const daemon = await testDaemon({ root: project.root, env: { OFFLINE: 'true', ...env }, tokens });
  daemons.push(daemon);
  return daemon;
}

const versionIn = (daemon: TestDaemon, named: string, by = token) =>
  daemon.ask('/api/tools/version', {
    method: 'POST',
    token: by,
    headers: { 'Content-Type': 'application/json', 'Polylogue-Root': encodeURIComponent(named) },
    body: '{}',
  });

/** The project that a caller works in when he names one; the status where he may not. */
async function projectOf(daemon: TestDaemon, named: string, by = token): Promise<unknown> {
  const response = await versionIn(daemon, named, by);
  const document: Document = await response.json();
  return response.ok ? document.content : response.status;
}

describe('a project that a caller names', () => {
  it('may be any for the operator while he set no roots, but never all of the machine', async () => {
    const daemon = await start({ POLYLOGUE_TOKEN: token, PROJECT_ROOT: '' });
    expect(await projectOf(daemon, other.root)).toContain(other.root);
    for (const path of ['/', '/root', '/home', '/home/ann', '/nowhere/at/all', other.path('a.md'), '', 'relative']) {
      const found = await projectOf(daemon, path);
      expect([path, found]).toEqual([path, path === '' ? expect.any(String) : 403]);
    }
    expect(await projectOf(daemon, other.root, 'the-token-of-the-guest')).toBe(403);
    const { error }: Document = await (await versionIn(daemon, '/nowhere/at/all')).json();
    expect(error.message).toBe('/nowhere/at/all cannot be your project: There is no such directory.');
  });

  it('lies within the roots that the operator set, for himself too', async () => {
    const daemon = await start({ POLYLOGUE_TOKEN: token });
    expect(await projectOf(daemon, project.root)).toContain(project.root);
    expect(await projectOf(daemon, other.root)).toBe(403);
  });

  it('is counted once, however many there were', async () => {
    const daemon = await start({ POLYLOGUE_TOKEN: token });
    for (let at = 0; at < 300; at += 1) await project.write(`many/${at}/a.txt`, 'x');
    const asked = Array.from({ length: 300 }, (_, at) => projectOf(daemon, project.path(`many/${at}`)));
    for (const [at, found] of (await Promise.all(asked)).entries()) {
      expect(found).toContain(project.path(`many/${at}`));
    }
    expect(await projectOf(daemon, project.path('many/0'))).toContain('many/0');
  });
});
