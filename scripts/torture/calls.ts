import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { figure, type Table } from '../../bench/measure/table.ts';
import type { PartOptions } from './part.ts';

const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));

interface Report {
  numPassedTests: number;
  numFailedTests: number;
  testResults: { assertionResults: { status: string; fullName: string; failureMessages: string[] }[] }[];
}

/** Kills servers during calls: the rounds of test/e2e/once.test.ts, which count what the vendor was asked. */
export async function calls({ rounds = 200 }: PartOptions): Promise<Table> {
  const began = performance.now();
  const directory = mkdtempSync(join(tmpdir(), 'polylogue-calls-'));
  const file = join(directory, 'report.json');
  const args = ['run', 'test/e2e/once.test.ts', '--reporter=json', `--outputFile=${file}`];
  const env = { ...process.env, TORTURE_ROUNDS: String(rounds) };
  const { status } = spawnSync(process.execPath, [vitest, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const report: Report = JSON.parse(readFileSync(file, 'utf8'));
  rmSync(directory, { recursive: true });
  const failed = report.testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(test => test.status === 'failed')
    .map(test => `${test.fullName}: ${test.failureMessages[0]?.split('\n')[0]}`);
  return {
    title: `calls: servers killed during calls, ${figure((performance.now() - began) / 1_000, 0)} s`,
    columns: ['what', 'figure'],
    rows: [
      ['kills at a random moment of a call', String(rounds)],
      ['tests that passed', String(report.numPassedTests)],
      ['tests that failed', String(report.numFailedTests)],
    ],
    failed: status === 0 || failed.length > 0 ? failed : [`vitest ended with ${status}`],
  };
}
