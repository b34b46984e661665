import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../../src/core/ports.ts';
import type { ProgressUpdate } from '../../../src/core/tool-host.ts';
import { type CallOptions, type Document, type TestProduct, testProduct } from '../../support/product.ts';
import { type StandIn, type StandInCall, type StandInStep, standIn } from '../../support/stand-in-cli.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import { waitUntil } from '../../support/wait-until.ts';

export interface CliRig {
  project: TempProject;
  polylogue: TestProduct;
  /** Calls `clink`, unless another tool is named. */
  call(args: Record<string, unknown>, options?: CallOptions & { tool?: string }): Promise<Document>;
  calls(): StandInCall[];
  /** What the CLIs do from now on. */
  script: StandIn['script'];
  /** Waits until nothing is left of what was started. */
  nothingLeft(): Promise<void>;
  left: StandIn['left'];
  /** What was told while the last call ran. */
  progress: ProgressUpdate[];
}

export interface CliRigOptions {
  /** Names of the CLIs that are installed; all of them are the stand-in. */
  clis: readonly string[];
  steps: readonly StandInStep[];
  /** Files about CLIs, by their name. */
  files?: Record<string, Record<string, unknown>>;
  env?: Record<string, string>;
  programEnv?: Record<string, string>;
  root?: Record<string, string>;
  clock?: Clock;
  /** `onTestFinished` of a test that runs at the same time as others. */
  whenFinished?: (end: () => Promise<void>) => unknown;
}

/** The product with scripted CLIs, until the test ends. Configuration lets them see their script; nothing else is changed. */
export async function cliRig({
  clis,
  steps,
  files = {},
  env = {},
  programEnv = {},
  root = {},
  clock,
  whenFinished = onTestFinished,
}: CliRigOptions): Promise<CliRig> {
  const project = await tempProject(root);
  const program = await standIn(...clis);
  const folder = project.path('.cli-files');
  await mkdir(folder, { recursive: true });
  for (const [name, entry] of Object.entries(files)) {
    await writeFile(join(folder, `${name}.json`), JSON.stringify({ name, ...entry }));
  }
  program.script(steps);
  const polylogue = await testProduct({
    root: project.root,
    env: { CLI_CLIENTS_CONFIG_PATH: folder, POLYLOGUE_TOOLSETS: 'core,code,agent', ...env },
    childEnv: { ...program.env, ...programEnv },
    ...(clock && { clock }),
  });
  whenFinished(async () => {
    await polylogue.close();
    await program.dispose();
    await project.dispose();
  });
  const progress: ProgressUpdate[] = [];
  return {
    project,
    polylogue,
    progress,
    call: (args, { tool = 'clink', ...options } = {}) =>
      polylogue.call(tool, args, { onProgress: update => progress.push(update), ...options }),
    calls: program.calls,
    script: program.script,
    left: program.left,
    nothingLeft: async () => {
      let left: string[] = [];
      const isNone = async () => {
        left = await program.left();
        return left.length === 0;
      };
      await waitUntil('nothing was left of what was started', isNone, { everyMs: 50, known: () => left.join('\n') });
    },
  };
}
