import { describe, expect, it } from 'vitest';
import { loadAppConfig } from '../../src/app/settings.ts';
import { readIfPresent, trustDirectory } from '../../src/config/settings-files.ts';
import { tempProject } from '../support/temp-project.ts';

/** Loads settings from files that only this test has. */
function load(files: Record<string, string>, env: Record<string, string> = {}) {
  return loadAppConfig({
    env: { POLYLOGUE_HOME: '/home/ann/polylogue', ...env },
    argvFlags: {},
    homeDir: '/home/ann',
    platform: 'linux',
    cwd: '/work/cloned',
    readFile: path => files[path],
  });
}

const nowhere = 'POLYLOGUE_EXTENSIONS=/nowhere/at-all.js\n';

describe('POLYLOGUE_EXTENSIONS', () => {
  it.each([
    ['the environment', () => load({}, { POLYLOGUE_EXTENSIONS: '/nowhere/at-all.js' })],
    ['the .env of POLYLOGUE_HOME', () => load({ '/home/ann/polylogue/.env': nowhere })],
    ['config.json there', () => load({ '/home/ann/polylogue/config.json': '{"extensions": ["/nowhere/at-all.js"]}' })],
  ])('counts in %s', async (_place, loading) => {
    await expect(loading()).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('cannot be loaded'),
    });
  });

  it('never counts in the .env of a project, not even of a trusted one', async () => {
    const project = await tempProject({ '.env': `${nowhere}LOCALE=fr-FR\n` });
    const home = await tempProject();
    trustDirectory(home.root, project.root);
    const { config, extensions } = await loadAppConfig({
      env: { POLYLOGUE_HOME: home.root },
      argvFlags: {},
      homeDir: home.root,
      platform: 'linux',
      cwd: project.root,
      readFile: readIfPresent,
    });
    expect(config.values.app.locale).toBe('fr-FR');
    expect(config.values.app.extensions).toBeUndefined();
    expect(extensions).toEqual({});
    await project.dispose();
    await home.dispose();
  });

  it('costs nothing where it is not set: words of no store are refused as ever', async () => {
    await expect(load({}, { POLYLOGUE_STORE: 'journal' })).rejects.toMatchObject({ kind: 'config' });
  });
});
