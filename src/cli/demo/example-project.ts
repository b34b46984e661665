import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A small program with a fault, for the demonstration to speak about. */
const files = {
  'cart.ts': `export interface Item {
  name: string;
  cents: number;
}

/** What all items cost together. */
export function total(items: readonly Item[]): number {
  let sum = 0;
  for (let n = 0; n <= items.length; n++) sum += items[n].cents;
  return sum;
}
`,
  'cart.test.ts': `import { total } from './cart.ts';

test('an empty cart costs nothing', () => {
  expect(total([])).toBe(0);
});
`,
};

export const programFile = 'cart.ts';
export const testFile = 'cart.test.ts';

export async function writeExampleProject(folder: string): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

/** Somebody mends the fault while nobody serves. */
export async function editExampleProject(folder: string): Promise<void> {
  await writeFile(join(folder, programFile), files[programFile].replace('n <= items.length', 'n < items.length'));
}
