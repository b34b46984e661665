import { parseArgs } from 'node:util';
import type { PartOptions } from './part.ts';

/** Part → what it does, for the help. */
const parts = {
  kills: 'kill -9 of processes that write to SQLite; --rounds: kills (default: 1000), and 1,000 writes for each',
  calls: 'kill -9 of servers during calls; --rounds: kills (default: 200)',
  power: 'a power loss after every write of a store; --rounds: steps of the store (default: 120)',
  damage: 'files of a store damaged at random; --rounds: files (default: 600)',
  floods: '100 clients of a daemon with a small heap, while others flood it; --rounds: calls of each (default: 3)',
  soak: 'mixed load on a daemon; --minutes: how long, of which 20 warm up (default: 80)',
} as const;

export type PartName = keyof typeof parts;

const isPart = (name: string): name is PartName => Object.hasOwn(parts, name);

/** Everything but the soak, which takes an hour. */
const usual: readonly PartName[] = ['kills', 'calls', 'power', 'damage', 'floods'];

const help = `Usage: npm run torture -- [part …] [--rounds N] [--seed S] [--minutes M]

Breaks the product on purpose and checks that it keeps its promises (docs/reliability.md). Each part prints a table; the exit
code is 1 if a promise was broken.

Parts (default: ${usual.join(', ')}):
${Object.entries(parts)
  .map(([name, what]) => `  ${name.padEnd(8)}${what}`)
  .join('\n')}

Options:
  --rounds N   how much of each part (default: see the parts)
  --seed S     seed of all that is random (default: 1); the same seed makes the same cases
  --minutes M  length of the soak, of which 20 warm up (default: 80)
  --help       show this help

Examples:
  npm run torture                          all but the soak, about 28 minutes
  npm run torture -- kills --rounds 50     a short run of one part
  npm run torture -- soak --minutes 5      to try the soak; it is judged by an hour
`;

export type TortureArguments = { parts: readonly PartName[]; options: PartOptions } | { help: string };

/** Reads the command line; throws a sentence that says what is wrong and what is allowed. */
export function readArguments(argv: readonly string[]): TortureArguments {
  const text = { type: 'string' } as const;
  const options = { rounds: text, seed: text, minutes: text, help: { type: 'boolean', short: 'h' } } as const;
  const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true });
  if (values.help) return { help };
  const unknown = positionals.find(name => !isPart(name));
  if (unknown !== undefined) {
    throw new Error(`Unknown part "${unknown}". Parts: ${Object.keys(parts).join(', ')}.`);
  }
  const chosen = [...new Set(positionals.filter(isPart))];
  return {
    parts: chosen.length > 0 ? chosen : usual,
    options: {
      seed: numberOf('seed', values.seed ?? '1', 0),
      minutes: numberOf('minutes', values.minutes ?? '80', 1),
      ...(values.rounds !== undefined && { rounds: numberOf('rounds', values.rounds, 1) }),
    },
  };
}

function numberOf(name: string, value: string, least: number): number {
  const number = Number(value);
  if (/^\d+$/.test(value) && Number.isSafeInteger(number) && number >= least) return number;
  throw new Error(`Invalid --${name} "${value}". Give a whole number from ${least}.`);
}
