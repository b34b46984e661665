import { existsSync, readFileSync } from 'node:fs';
import { summarize } from './test-summary/summarize.ts';

/** A JSON report of vitest and the exit code of the run: of all tests, of the real hosts; and the names of other steps that failed. */
const [report = '', exitCode = '1', hostsReport = '', hostsExitCode = '1', ...failedSteps] = process.argv.slice(2);

const textOf = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '');
const { passed, failed } = summarize(
  [
    { report: textOf(report), succeeded: exitCode === '0' },
    // Where no host can be installed, each is skipped with its name.
    { report: textOf(hostsReport), succeeded: hostsExitCode === '0', maySkipAll: true },
  ],
  failedSteps.length,
);

for (const step of failedSteps) console.log(`failed: ${step}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
