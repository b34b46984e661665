import { existsSync, readFileSync } from 'node:fs';
import { summarize } from './test-summary/summarize.ts';

/** vitest's JSON report and exit code of the tests, the same of those with real hosts, and the other steps that failed. */
const [report = '', exitCode = '1', hosts = '', hostsExitCode = '1', ...failedSteps] = process.argv.slice(2);
const textOf = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '');
const own = summarize(textOf(report), exitCode === '0', failedSteps.length);
const hosted = summarize(textOf(hosts), hostsExitCode === '0', 0, true);
const [passed, failed] = [own.passed + hosted.passed, own.failed + hosted.failed];

for (const step of failedSteps) console.log(`failed: ${step}`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
