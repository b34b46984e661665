import { expect, it } from 'vitest';
import { damage, damageKinds } from '../../../scripts/torture/damage.ts';

it('serves what is intact of a damaged store, names what is lost, and continues', async () => {
  const { rows, failed } = await damage({ seed: 11, rounds: damageKinds.length + 6, minutes: 0 });
  expect(failed).toEqual([]);
  expect(rows.map(([kind]) => kind)).toEqual([...damageKinds, 'all']);
});
