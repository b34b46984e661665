import { isRecord } from '../../src/core/json.ts';

function numberIn(report: Record<string, unknown>, key: string): number {
  const value = report[key];
  return typeof value === 'number' ? value : 0;
}

/** A test file that could not even be loaded: it failed, but has no test that did. */
function isBrokenFile(file: unknown): boolean {
  if (!isRecord(file) || file.status !== 'failed' || !Array.isArray(file.assertionResults)) return false;
  return !file.assertionResults.some(test => isRecord(test) && test.status === 'failed');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // No report or half of one: the runner did not get to its end, which counts as a failure below.
    return undefined;
  }
}

/** One run of tests. */
export interface TestRun {
  /** vitest's JSON report; empty: there is none. */
  report: string;
  /** Its exit code was 0. */
  succeeded: boolean;
  /** It is well although every test of it was skipped. */
  maySkipAll?: boolean;
}

/**
 * What all comes to: the tests of each run, each test file that could not be loaded, and each step beside the tests that failed.
 * A run that failed without telling which test, or did not run, counts as one failure.
 */
export function summarize(runs: readonly TestRun[], failedSteps: number): { passed: number; failed: number } {
  const counts = runs.map(countsOf);
  return {
    passed: counts.reduce((sum, { passed }) => sum + passed, 0),
    failed: counts.reduce((sum, { failed }) => sum + failed, failedSteps),
  };
}

function countsOf({ report: text, succeeded, maySkipAll = false }: TestRun): { passed: number; failed: number } {
  const parsed = parse(text);
  const report = isRecord(parsed) ? parsed : {};
  const files = Array.isArray(report.testResults) ? report.testResults : [];
  const passed = numberIn(report, 'numPassedTests');
  const failed = numberIn(report, 'numFailedTests') + files.filter(isBrokenFile).length;
  const isEmpty = passed === 0 && !(maySkipAll && numberIn(report, 'numPendingTests') > 0);
  return { passed, failed: failed === 0 && (!succeeded || isEmpty) ? 1 : failed };
}
