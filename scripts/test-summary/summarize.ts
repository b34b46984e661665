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

/**
 * What a whole run comes to, from vitest's JSON report: its tests, each test file that could not be loaded, and each step
 * beside the tests that failed. A test run that failed without telling which test, or did not run, counts as one failure.
 */
export function summarize(text: string, testsPassed: boolean, failedSteps: number): { passed: number; failed: number } {
  const parsed = parse(text);
  const report = isRecord(parsed) ? parsed : {};
  const files = Array.isArray(report.testResults) ? report.testResults : [];
  const passed = numberIn(report, 'numPassedTests');
  const failedTests = numberIn(report, 'numFailedTests') + files.filter(isBrokenFile).length;
  const untold = failedTests === 0 && (!testsPassed || passed === 0);
  return { passed, failed: failedTests + failedSteps + (untold ? 1 : 0) };
}
