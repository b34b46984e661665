import { chmod } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isHandedIn, openTokenStore } from '../../../src/server/daemon/token-store.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

let folder: TempProject;
beforeAll(async () => {
  folder = await tempProject();
});
afterAll(() => folder.dispose());

it('warns of a file of tokens that others may read', async () => {
  await folder.write('tokens.json', JSON.stringify({ tokens: [{ name: 'ann', token: 'a-long-and-random-text' }] }));
  const path = folder.path('tokens.json');
  await chmod(path, 0o640);
  expect((await openTokenStore(path)).warnings).toEqual([expect.stringContaining('chmod 600')]);
  await chmod(path, 0o600);
  expect((await openTokenStore(path)).warnings).toEqual([]);
});

it('takes no offence at the modes that systemd and container engines give to secrets', () => {
  // systemd gives a credential to a dynamic user by an access list, which shows as 0440.
  expect(isHandedIn('/run/credentials/polylogue.service/tokens.json')).toBe(true);
  expect(isHandedIn('/run/secrets/tokens')).toBe(true);
  expect(isHandedIn('/srv/run/secrets/tokens')).toBe(false);
  expect(isHandedIn('/run/secrets/../../home/ann/tokens')).toBe(false);
});
