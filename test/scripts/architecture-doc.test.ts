import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { houseTable } from '../../scripts/rooms/table.ts';

const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');

/** Rows of the page's table: room → the rooms it may import. */
function documented(): Map<string, string[]> {
  const rows = page.matchAll(/^\| `(\w+)` \| ([^|]*) \|/gm);
  return new Map(
    [...rows].map(([, room = '', imports = '']) => [
      room,
      [
        'domain',
        'config',
        'telemetry',
        'files',
        'memory',
        'models',
        'engine',
        'tools',
        'server',
        'cli',
        'app.ts',
        'extensions.ts',
      ].filter(name => new RegExp(`(?<![\\w.])${name.replace('.', '\\.')}(?!\\w)`).test(imports)),
    ]),
  );
}

describe('docs/architecture.md', () => {
  it('draws the rooms that the checks enforce, with the same imports', () => {
    const enforced = Object.entries(houseTable.rooms).map(([room, { imports }]) => {
      const rooms = imports.map(target => target.split('/')[0]!).filter(target => target !== 'version.ts');
      return [room, [...new Set(rooms)].sort()] as const;
    });
    const drawn = [...documented()].map(([room, imports]) => [room, imports.toSorted()] as const);
    expect(Object.fromEntries(drawn)).toEqual(Object.fromEntries(enforced));
  });
});
