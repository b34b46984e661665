import { expect, it } from 'vitest';
import { createRegistry } from '../../src/observability/metrics.ts';

const help = 'Back\\slash\nand line.';

it('shows what a gauge says at that moment, and one of its name once', () => {
  const { gauge, render } = createRegistry();
  let count = 1;
  gauge('sessions', help, [], () => [[[], -1]]);
  gauge('sessions', help, [], () => [[[], count]]);
  expect(render()).toBe('# HELP sessions Back\\\\slash\\nand line.\n# TYPE sessions gauge\nsessions 1\n');
  count = 2;
  expect(render()).toContain('\nsessions 2\n');
});

it('takes nothing off a counter, and shows sums without the dust of fractions', () => {
  const { counter, render } = createRegistry();
  const cost = counter('cost', help, ['a']);
  for (const amount of [0.1, 0.2, -5, Number.NaN]) cost(['x'], amount);
  expect(render()).toContain('\ncost{a="x"} 0.3\n');
});
