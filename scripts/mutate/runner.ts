import { type RunnerTask, type RunnerTestCase, type RunnerTestFile, TestRunner } from 'vitest';
import { currentControl, takeHits } from './control.ts';

/** Skips what is not selected and what follows a failure, and notes which test reaches which mutants. */
export default class MutationRunner extends TestRunner {
  onCollected(files: RunnerTestFile[]): void {
    const control = currentControl();
    for (const id of takeHits(control)) control.always.add(id);
    for (const file of files) {
      if (file.result?.state === 'fail') control.failed ??= `loading ${file.name}`;
      if (control.selected !== undefined) select(file, control.selected);
    }
  }

  override async onBeforeRunTask(test: RunnerTestCase): Promise<void> {
    const control = currentControl();
    for (const id of takeHits(control)) control.always.add(id);
    if (control.selected !== undefined && control.failed !== undefined) test.mode = 'skip';
    await super.onBeforeRunTask(test);
  }

  override onAfterRunTask(test: RunnerTestCase): void {
    const control = currentControl();
    control.tests.set(test.id, { hits: takeHits(control), took: test.result?.duration ?? 0 });
    if (test.result?.state === 'fail') control.failed ??= test.fullName;
    super.onAfterRunTask(test);
  }

  override onAfterRunFiles(files: RunnerTestFile[]): void {
    const control = currentControl();
    for (const id of takeHits(control)) control.always.add(id);
    for (const file of files) if (file.result?.state === 'fail') control.failed ??= `hooks of ${file.name}`;
    super.onAfterRunFiles(files);
  }
}

/** Leaves only selected tests, and suites that have some. */
function select(task: RunnerTask, selected: ReadonlySet<string>): boolean {
  const kept =
    task.type === 'suite' ? task.tasks.map(each => select(each, selected)).includes(true) : selected.has(task.id);
  if (!kept) task.mode = 'skip';
  return kept;
}
