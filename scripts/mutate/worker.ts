/** The process that runs the tests: loads everything once, then runs the tests of one mutant after the other. */
import { appendFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { performance } from 'node:perf_hooks';
import workerThreads, { setEnvironmentData } from 'node:worker_threads';
import { init, runBaseTests, setupEnvironment } from 'vitest/worker';
import { type Control, takeHits } from './control.ts';
import { answerMutants, type FileReach, type RunEvent, readPlan, type Switches, threadData } from './protocol.ts';

type State = Parameters<typeof runBaseTests>[1];
type Traces = Parameters<typeof runBaseTests>[2];
type ModuleRunner = Parameters<NonNullable<Parameters<typeof init>[0]['onModuleRunner']>>[0];

const plan = readPlan();
const { now } = performance;
const sharedSwitches: Switches = {
  active: new Int32Array(new SharedArrayBuffer(4)),
  hits: new Uint8Array(new SharedArrayBuffer(plan.size)),
};
const control: Control = {
  ...sharedSwitches,
  selected: undefined,
  failed: undefined,
  always: new Set(),
  tests: new Map(),
};
globalThis.mutationControl = control;
answerMutants(sharedSwitches);
setEnvironmentData(threadData, sharedSwitches);

/** Threads of the tests load the instrumented files too. */
class InstrumentedWorker extends workerThreads.Worker {
  constructor(file: string | URL, options: workerThreads.WorkerOptions = {}) {
    const hook = new URL('./thread.ts', import.meta.url).href;
    super(file, { ...options, execArgv: [...(options.execArgv ?? process.execArgv), '--import', hook] });
  }
}
workerThreads.Worker = InstrumentedWorker;
syncBuiltinESMExports();

function tell(event: RunEvent): void {
  appendFileSync(plan.events, `${JSON.stringify(event)}\n`);
}

let modules: ModuleRunner | undefined;

/** Makes the next import load the instrumented files anew, and all that import them: they may keep what a mutant made. */
function forget(): void {
  const graph = modules?.evaluatedModules;
  if (graph === undefined) return;
  const ids = Object.keys(plan.sources).flatMap(url =>
    [...(graph.getModulesByFile(new URL(url).pathname) ?? [])].map(({ id }) => id),
  );
  const seen = new Set(ids);
  for (const id of seen) {
    const node = graph.getModuleById(id);
    if (node === undefined) continue;
    for (const importer of node.importers) seen.add(importer);
    // Without `meta`, the code would be fetched again.
    node.evaluated = false;
    node.promise = undefined;
    node.exports = undefined;
  }
}

/** Calls of the main process that only serve its report of tests. */
const reports = [
  'onQueued',
  'onCollected',
  'onTaskUpdate',
  'onTaskArtifactRecord',
  'onUserConsoleLog',
  'onUnhandledError',
  'snapshotSaved',
];

async function runFile(state: State, traces: Traces, filepath: string): Promise<number> {
  const files = state.ctx.files.filter(file => file.filepath === filepath);
  const rpc = new Proxy(state.rpc, {
    get: (target, name) => (reports.includes(String(name)) ? async () => undefined : Reflect.get(target, name)),
  });
  const began = now.call(performance);
  await runBaseTests('run', { ...state, rpc, ctx: { ...state.ctx, files } }, traces);
  return now.call(performance) - began;
}

/** Returns `undefined` when tests fail without a mutant: no mutant would tell anything then. */
async function measureReach(state: State, traces: Traces): Promise<FileReach[] | undefined> {
  const reach: FileReach[] = [];
  const failed: string[] = [];
  for (const { filepath } of state.ctx.files) {
    tell({ is: 'measure', filepath });
    forget();
    takeHits(control);
    Object.assign(control, { selected: undefined, failed: undefined, always: new Set(), tests: new Map() });
    const took = await runFile(state, traces, filepath);
    if (control.failed !== undefined) failed.push(`${filepath}: ${control.failed}`);
    const inTests = [...control.tests.values()].reduce((sum, test) => sum + test.took, 0);
    const tests = Object.fromEntries(control.tests);
    reach.push({ filepath, always: [...control.always], tests, took: Math.max(0, took - inTests) });
  }
  tell({ is: 'reach', reach, failed });
  return failed.length > 0 ? undefined : reach;
}

async function tryMutant(state: State, traces: Traces, reach: readonly FileReach[], mutant: number): Promise<void> {
  const runs = reach.flatMap(({ filepath, always, tests, took: loading }) => {
    const all = Object.entries(tests);
    const chosen = always.includes(mutant) ? all : all.filter(([, { hits }]) => hits.includes(mutant));
    const took = chosen.reduce((sum, [, test]) => sum + test.took, loading);
    return chosen.length === 0 ? [] : [{ filepath, selected: new Set(chosen.map(([id]) => id)), took }];
  });
  const expected = runs.reduce((sum, { took }) => sum + took, 0);
  tell({ is: 'begin', mutant, limit: 4000 + 4 * expected });
  forget();
  control.failed = undefined;
  control.active[0] = mutant;
  for (const { filepath, selected } of runs.toSorted((a, b) => a.took - b.took)) {
    control.selected = selected;
    await runFile(state, traces, filepath);
    if (control.failed !== undefined) break;
  }
  control.active[0] = 0;
  tell({ is: 'end', mutant, reached: runs.length > 0, ...(control.failed !== undefined && { by: control.failed }) });
}

async function runTests(state: State, traces: Traces): Promise<void> {
  tell({ is: 'start', pid: process.pid });
  const reach = plan.reach ?? (await measureReach(state, traces));
  if (reach === undefined) return;
  for (const mutant of plan.mutants) await tryMutant(state, traces, reach, mutant);
}

const { send } = process;
if (send === undefined) throw new Error('The worker of the mutation check is started by scripts/mutate.ts.');
const [post, on, off] = [send.bind(process), process.on.bind(process), process.off.bind(process)];
// Tests may leave what keeps a process busy, or replace what ends it.
on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
init({
  post: message => void post(message),
  on: listener => void on('message', listener),
  off: listener => void off('message', listener),
  setup: setupEnvironment,
  onModuleRunner: runner => {
    modules = runner;
  },
  runTests,
  collectTests: () => undefined,
});
