import { z } from 'zod';
import { inSteps, wordsOf, workflowFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

const role = `You write the tests that the caller has prepared step by step. The tests are for the code in the files you were given; the findings say what to test and how this project tests.

Go about it in this order, and keep all but the last step to yourself:
1. Context: language, test framework, naming, folders, fixtures and style, taken from the tests that are there. Where there are none, take what is usual for the language: Vitest or Jest for TypeScript and JavaScript, pytest for Python, JUnit 5 for Java and Kotlin, the testing package for Go, the built-in harness for Rust, RSpec for Ruby, xUnit for C#, XCTest for Swift, PHPUnit for PHP, GoogleTest for C++.
2. Paths: each public entry point, its branches, its errors, its effects on the world outside.
3. Attack: what would break it? Empty, missing, one, many, too many; smallest, largest, just beyond; wrong type or encoding, Unicode, time zones, daylight saving, leap days; duplicates, wrong order, repetition; concurrency, cancellation, time-outs, partial failure, a full disk, a lost connection; input meant to do harm.
4. Choice: what is likely to go wrong and costly when it does comes first. A test that cannot fail, or that repeats another, is left out.
5. Writing.

Rules:
- Only what was asked for: no refactoring, no tests of third-party code, no new dependencies unless the project has no framework at all.
- Test behavior through the public interface. Fake only what is outside: network, clock, randomness, file system where it must be.
- Deterministic, independent of order, quick: no sleeping, no real network, no dependence on the machine.
- One behavior a test; its name says which. Assert results, not steps; assert the error's kind as well as that there is one.
- The tests must run as they stand: every import, fixture and function they use is there or is written here.
- A test that shows a bug asserts what is right, with one comment line that says what the code does instead.

Answer with the tests alone: for each file a heading with its path, then one code block with the whole file, or with the whole addition and the place where it goes. No introduction and no summary.
Where you could not write them all, write the most important ones, and end with this JSON object on a separate line: {"status": "more_tests_required", "pending_tests": "test name (file), …"}
Where you cannot tell how this project tests and a guess would be useless, answer instead with this JSON object alone: {"status": "test_sample_needed", "reason": "what is unclear, and which kind of test file would settle it"}`;

const { issues_found: _issues, ...stepByStep } = workflowFields;
const fields = { ...stepByStep, relevant_context: z.array(z.string()).describe('Scenarios to test').optional() };

export const testgen = defineTool({
  name: 'testgen',
  title: 'Generate tests',
  description: 'Design tests in steps: paths, edge cases, failures; an expert model then writes them.',
  toolset: 'code',
  ...inSteps(fields, { test_examples: 'relevant_files' }),
  mode: {
    kind: 'workflow',
    words: wordsOf('testgen', 'test_generation', {
      pause: 'pause_for_test_analysis',
      skipped: {
        status: 'test_generation_complete_ready_for_implementation',
        reason: 'skipped_due_to_certain_test_confidence',
      },
    }),
    neededAtFirst: ['relevant_files'],
    certain: ({ confidence }) => confidence === 'certain',
    counters: (_step, { relevantContext, confidence }) => ({
      test_scenarios_identified: relevantContext.length,
      analysis_confidence: confidence,
    }),
    requiredActions: ({ stepNumber, confidence }) => (stepNumber === 1 ? first : (byConfidence[confidence] ?? done)),
    expert: {
      role,
      json: false,
      after:
        'Write the files, run them and fix failures; ask again with the output where that does not succeed. After more_tests_required, send one more step whose findings name the pending tests.',
    },
  },
});

const first = [
  'Read the code to test in full, and what it calls',
  'List its public entry points and what each promises',
  'Find the parts whose failure would cost most',
  'Read the existing tests: framework, directories, names, fixtures, style; add one that is typical to relevant_files',
  'Note dependencies that a test must replace, and what makes the code hard to test',
];

const early = [
  'Go through each entry point and write down the behaviors to test, in relevant_context',
  'Follow every branch and every error path',
  'Collect edge cases: empty, boundary, malformed, duplicate, hostile input',
  'Look at asynchronous work, shared state and clean-up',
  'Find what is not deterministic: time, randomness, order, network',
];

const byConfidence: Record<string, string[]> = {
  exploring: early,
  low: early,
  medium: [
    'Complete the list: a scenario for success and one for failure of every behavior',
    'Settle kind and place of each test: unit, integration, end to end',
  ],
  high: [
    'Add scenarios of concurrency, limits and cancellation where they apply',
    'List what must be fixed to make each test deterministic: time, randomness, order',
  ],
  very_high: ['Write each scenario as given / when / then, with the file and the name of its test'],
  almost_certain: [
    'Check the list of scenarios against the code once more for what is missing or double',
    'Set next_step_required to false to have the tests written',
  ],
};

const done = ['The scenarios are complete: set next_step_required to false'];
