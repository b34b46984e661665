import { existsSync, readFileSync } from 'node:fs';
import { summarize } from './test-summary/summarize.ts';

/** vitest's JSON report, the exit code of the tests, and the names of the other steps that failed. */
const [report = '', exitCode = '1', ...failedSteps] = process.argv.slice(2);
const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
const { passed, failed } = summarize(text, exitCode === '0', failedSteps.length);

for (const step of failedSteps) console.log(`failed: ${step}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
