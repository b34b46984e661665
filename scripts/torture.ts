/** Kills processes at random moments of their writes and calls, 200 times each, or as often as the argument says. */
import { spawnSync } from 'node:child_process';

const rounds = Number(process.argv[2] ?? 200);
if (!Number.isInteger(rounds) || rounds < 1) {
  process.stderr.write('Name a number of rounds, or nothing for 200.\n');
  process.exit(2);
}
const files = ['test/storage/sqlite/sqlite-crash.test.ts', 'test/e2e/once.test.ts'];
const vitest = new URL('../node_modules/vitest/vitest.mjs', import.meta.url).pathname;
const env = { ...process.env, TORTURE_ROUNDS: String(rounds) };
const { status } = spawnSync(process.execPath, [vitest, 'run', ...files], { env, stdio: 'inherit' });
process.exit(status ?? 1);
