import { describe, expect, it } from 'vitest';
import { summarize } from '../../scripts/test-summary/summarize.ts';

function report(passed: number, failed: number, testResults: unknown[] = []): string {
  return JSON.stringify({ numPassedTests: passed, numFailedTests: failed, testResults });
}

describe('the closing line', () => {
  it('counts the tests', () => {
    expect(summarize(report(12, 0), true, 0)).toEqual({ passed: 12, failed: 0 });
    expect(summarize(report(12, 3), false, 0)).toEqual({ passed: 12, failed: 3 });
  });

  it('counts a test file that could not be loaded', () => {
    const files = [
      { status: 'failed', assertionResults: [] },
      { status: 'failed', assertionResults: [{ status: 'failed' }] },
      { status: 'passed', assertionResults: [{ status: 'passed' }] },
    ];
    expect(summarize(report(12, 1, files), false, 0)).toEqual({ passed: 12, failed: 2 });
  });

  it('counts every other step that failed', () => {
    expect(summarize(report(12, 0), true, 2)).toEqual({ passed: 12, failed: 2 });
  });

  it.each([
    ['a run that failed without a failed test', report(12, 0), false, 12],
    ['no report', '', false, 0],
    ['half a report', '{"numPassedTests": 3', false, 0],
    ['a run without tests', report(0, 0), true, 0],
  ])('counts one failure for %s', (_, text, testsPassed, passed) => {
    expect(summarize(text, testsPassed, 0)).toEqual({ passed, failed: 1 });
  });
});
