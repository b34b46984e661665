import { describe, expect, it } from 'vitest';
import { summarize, type TestRun } from '../../scripts/test-summary/summarize.ts';

function report(passed: number, failed: number, testResults: unknown[] = [], pending = 0): string {
  return JSON.stringify({ numPassedTests: passed, numFailedTests: failed, numPendingTests: pending, testResults });
}

const run = (text: string, succeeded: boolean): TestRun => ({ report: text, succeeded });

describe('the closing line', () => {
  it('counts the tests', () => {
    expect(summarize([run(report(12, 0), true)], 0)).toEqual({ passed: 12, failed: 0 });
    expect(summarize([run(report(12, 3), false)], 0)).toEqual({ passed: 12, failed: 3 });
  });

  it('counts a test file that could not be loaded', () => {
    const files = [
      { status: 'failed', assertionResults: [] },
      { status: 'failed', assertionResults: [{ status: 'failed' }] },
      { status: 'passed', assertionResults: [{ status: 'passed' }] },
    ];
    expect(summarize([run(report(12, 1, files), false)], 0)).toEqual({ passed: 12, failed: 2 });
  });

  it('counts every other step that failed', () => {
    expect(summarize([run(report(12, 0), true)], 2)).toEqual({ passed: 12, failed: 2 });
  });

  it.each([
    ['a run that failed without a failed test', report(12, 0), false, 12],
    ['no report', '', false, 0],
    ['half a report', '{"numPassedTests": 3', false, 0],
    ['a run without tests', report(0, 0), true, 0],
    ['a run that skipped all', report(0, 0, [], 9), true, 0],
  ])('counts one failure for %s', (_, text, testsPassed, passed) => {
    expect(summarize([run(text, testsPassed)], 0)).toEqual({ passed, failed: 1 });
  });

  const hosts = (text: string, succeeded: boolean): TestRun => ({ ...run(text, succeeded), maySkipAll: true });

  it.each([
    ['all of them', hosts(report(34, 0), true), { passed: 46, failed: 0 }],
    ['none, for none could be installed', hosts(report(0, 0, [], 34), true), { passed: 12, failed: 0 }],
    ['some, and the others are skipped', hosts(report(20, 0, [], 14), true), { passed: 32, failed: 0 }],
    ['one that fails', hosts(report(33, 1), false), { passed: 45, failed: 1 }],
    ['what could not be started', hosts('', false), { passed: 12, failed: 1 }],
    ['no test at all', hosts(report(0, 0), true), { passed: 12, failed: 1 }],
  ])('adds the run of the hosts: %s', (_, second, sum) => {
    expect(summarize([run(report(12, 0), true), second], 0)).toEqual(sum);
  });
});
