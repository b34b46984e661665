import { describe, expect, it } from 'vitest';
import { commandProblem, usualCommands } from '../../../../../src/engine/modes/agent/local-tools/command-policy.ts';

describe('an allowed command', () => {
  it.each([
    'npm test --prefix /tmp/theirs',
    'npm test --prefix=/tmp/theirs',
    'npm test -C/tmp/theirs',
    'npm run build --script-shell=/bin/rm',
    'pnpm run build -C /tmp/theirs',
    'node --test --import data:text/javascript,evil()',
    'node --test -r ./evil.cjs',
    'npx vitest run --root /tmp/theirs',
    'npx tsc --noEmit --noEmit false --outDir .git/hooks',
    'pytest -p evil',
    'python -m pytest -c/tmp/theirs.ini',
    'go test -exec rm ./...',
    'go test --exec=rm ./...',
    'go vet -vettool=/tmp/theirs',
    'cargo test --config target.runner="rm"',
    'cargo test --manifest-path=/tmp/theirs/Cargo.toml',
    'make test --eval=$(shell',
    'make test SHELL=/tmp/theirs',
    'make test A=$(shell',
    'make test -f/tmp/theirs',
  ])('does not become another one: %s', command => {
    expect(commandProblem(command.split(' '), usualCommands)).toMatch(/makes another command/);
  });

  it('takes the arguments that belong to it, and what the operator named himself', () => {
    for (const command of [
      'npm test',
      'npm test -- --import x',
      'npm run lint --workspace=a',
      'node --test test/a.test.js --test-name-pattern=adds',
      'npx vitest run test/a.test.ts -t adds',
      'npx tsc --noEmit -p .',
      'pytest -x -k adds tests/test_a.py',
      'go test -run TestAdd ./...',
      'cargo test adds -- --nocapture',
      'make test V=1 -j4',
    ]) {
      expect(commandProblem(command.split(' '), usualCommands), command).toBeUndefined();
    }
    const own = ['node --import tsx --test'];
    expect(commandProblem('node --import tsx --test a.ts'.split(' '), own)).toBeUndefined();
  });
});
