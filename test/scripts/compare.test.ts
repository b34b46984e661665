import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
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

it.each(['', '/.pal_venv/bin/python'])(
  'measures Polylogue and what a checkout or a program starts, in one table: %s',
  async program => {
    const checkout = await standIn();
    const { stdout } = await compare(checkout.root + program);
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
  },
);

it('refuses a folder that is no checkout, and says how to get one', async () => {
  const place = await tempProject();
  await expect(compare(place.root)).rejects.toMatchObject({
    stderr: expect.stringMatching(/git clone[\s\S]*pip install pal-mcp-server/),
  });
  await place.dispose();
});
