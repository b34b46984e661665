import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { placesIn } from '../../src/workspace/protected-files.ts';
import { asNobody } from '../support/as-nobody.ts';

it('are found in a folder whose own user may not read it, at whatever depth', async () => {
  await asNobody(async () => {
    const project = mkdtempSync(join(realpathSync(tmpdir()), 'polylogue-unreadable-'));
    try {
      mkdirSync(join(project, 'deep/.vscode'), { recursive: true });
      writeFileSync(join(project, '.mcp.json'), '{}');
      for (const folder of ['deep', '.']) chmodSync(join(project, folder), 0o311);
      const found = (await placesIn(project, false)).fixed.map(({ path }) => path);
      expect(found).toEqual(['.mcp.json', 'deep/.vscode']);
    } finally {
      rmSync(project, { recursive: true });
    }
  });
});
