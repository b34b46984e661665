import { leadingAway } from '../../../agent/hands/extra-arguments.ts';

/** What may be run where the operator said nothing: the usual ways to test, check and build a project. */
export const usualCommands = [
  'npm test',
  'npm run *',
  'pnpm test',
  'pnpm run *',
  'yarn test',
  'node --test',
  'npx vitest run',
  'npx tsc --noEmit',
  'pytest',
  'python -m pytest',
  'python3 -m pytest',
  'python -m unittest',
  'python3 -m unittest',
  'go test',
  'go vet',
  'cargo test',
  'cargo check',
  'make test',
  'make check',
] as const;

/** Why a command may not be run; undefined: it may. Entries are its first words, `*` for any one word. */
export function commandProblem(argv: readonly string[], allowed: readonly string[]): string | undefined {
  const control = argv.find(word => /[\0\n\r]/.test(word));
  if (control !== undefined) return 'an argument has a line break or a NUL character.';
  const fitting = allowed.flatMap(entry => {
    const words = entry.trim().split(/\s+/);
    if (words[0] === '' || words[0] === '*' || words.length > argv.length) return [];
    const fits = words.every((word, index) => word === argv[index] || (word === '*' && isPlain(argv[index])));
    return fits ? [words.length] : [];
  });
  const away = leadingAway(argv[0] ?? '', argv.slice(Math.max(0, ...fitting)));
  if (fitting.length > 0 && away === undefined) return undefined;
  if (fitting.length > 0) {
    return `"${(away ?? '').slice(0, 100)}" makes another command of it; only an entry of the operator's that names it allows it.`;
  }
  return `"${argv.join(' ').slice(0, 200)}" is none of the commands that the operator allows: ${allowed.join(', ')}.`;
}

/** An option in the place of a name could be anything. */
function isPlain(word: string | undefined): boolean {
  return word !== undefined && !word.startsWith('-');
}
