import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { testProduct } from '../support/product.ts';
import { tempProject } from '../support/temp-project.ts';

it('a thread that is damaged on the disk can be deleted, by itself and with all others, by its owner alone', async () => {
  const project = await tempProject();
  const polylogue = await testProduct({ root: project.root });
  const step = { step: 'Look.', step_number: 1, total_steps: 2, next_step_required: true, findings: 'None.' };
  const begin = async () => (await polylogue.call('debug', step)).continuation_id;
  try {
    const [one, two, sound] = [await begin(), await begin(), await begin()];
    await polylogue.product.close();
    const db = new DatabaseSync(join(polylogue.home, 'threads.sqlite'));
    const spoil = db.prepare(
      "UPDATE records SET body = replace(body, 'Look', 'Lock') WHERE kind = 'turn' AND instr(body, ?) > 0",
    );
    for (const id of [one, two]) expect(spoil.run(id).changes).toBe(1);
    db.close();
    await polylogue.restart();

    const named = { action: 'delete', continuation_id: one };
    const read = JSON.stringify(await polylogue.call('threads', { ...named, action: 'read' }));
    expect(read).toContain('Look');
    expect(read).not.toContain('Lock');
    expect((await polylogue.call('threads', named)).error.class).toBe('confirmation');
    const foreign = await polylogue.call('threads', { ...named, confirm: true }, { owner: 'mallory' });
    expect(foreign.isError).toBe(true);
    const deleted = await polylogue.call('threads', { ...named, confirm: true });
    expect(deleted).toMatchObject({ isError: false, deleted: [one] });
    const all = await polylogue.call('threads', { action: 'delete_all', confirm: true });
    expect(all.isError).toBe(false);
    expect(all.deleted.toSorted()).toEqual([two, sound].toSorted());
    expect((await polylogue.call('threads', { action: 'list' })).threads).toEqual([]);
  } finally {
    await polylogue.close();
    await project.dispose();
  }
});
