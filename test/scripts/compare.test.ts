import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { palIn } from '../../scripts/compare/pal.ts';
import { tempProject } from '../support/temp-project.ts';

const repository = fileURLToPath(new URL('../../', import.meta.url));
const compare = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['scripts/compare.ts', ...args], { cwd: repository });

/** Stands for a checkout of PAL: what its Python starts is this server, without a memory that lasts. */
async function standIn() {
  const place = await tempProject({
    'server.py': '',
    '.pal_venv/bin/python': `#!/bin/sh\nexport POLYLOGUE_STORE=memory\nexec "${process.execPath}" "${repository}dist/main.js"\n`,
  });
  await chmod(place.path('.pal_venv/bin/python'), 0o755);
  return place;
}

it('measures Polylogue and what a checkout starts, in one table', async () => {
  const checkout = await standIn();
  const { stdout } = await compare(checkout.root);
  const rows = stdout
    .split('\n')
    .filter(line => line.startsWith('| '))
    .map(line => line.split(' | ').map(cell => cell.replace(/^\| | \|$/g, '')));
  expect(rows.map(([, ...cells]) => cells)).toEqual([
    ['Polylogue', 'PAL MCP'],
    ['---', '---'],
    [expect.stringMatching(/^\d+ ms$/), expect.stringMatching(/^\d+ ms$/)],
    [expect.stringMatching(/^\d{4} \(19 tools\)$/), expect.stringMatching(/^\d{4} \(19 tools\)$/)],
    [expect.stringMatching(/tokens, 9\d%.*\$0\.\d+$/), expect.stringMatching(/tokens, 9\d%.*\$0\.\d+$/)],
    [expect.stringMatching(/^\d+ ms$/), expect.stringMatching(/^\d+ ms$/)],
    ['yes', 'no'],
  ]);
  expect(stdout).not.toContain('git clone');
  await checkout.dispose();
});

it('starts a checkout by its own Python, else by uv, and a program as it is', async () => {
  const checkout = await standIn();
  const [python, server] = [checkout.path('.pal_venv/bin/python'), checkout.path('server.py')];
  expect(palIn(python)).toEqual({ name: 'PAL MCP', command: python, args: [] });
  expect(palIn(checkout.root)).toEqual({ name: 'PAL MCP', command: python, args: [server] });
  await checkout.remove('.pal_venv');
  expect(palIn(checkout.root)).toMatchObject({ command: 'uv', args: expect.arrayContaining(['python', server]) });
  await checkout.dispose();
});

it('refuses a folder that is no checkout, and says how to get one', async () => {
  const place = await tempProject();
  await expect(compare(place.root)).rejects.toMatchObject({
    stderr: expect.stringMatching(/git clone[\s\S]*pip install pal-mcp-server/),
  });
  await place.dispose();
});
