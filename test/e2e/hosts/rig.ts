import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expect } from 'vitest';
import { hostCommand } from '../../../scripts/test-needs/host-clis.ts';
import { runProgram } from '../../cli/run-program.ts';
import { vendorEnv } from '../../support/product.ts';
import { tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { TestHost } from './hosts.ts';
import { type Move, type ScriptedModel, startScriptedModel } from './scripted-model.ts';

/** One host in a home and a project of its own, between the scripted model and the vendor that our server asks. */
export interface HostRig {
  vendor: FakeVendor;
  model: ScriptedModel;
  /** Writes the entry as `init` does for a user whose environment has these variables. */
  configure(env?: Record<string, string>): Promise<void>;
  start(args: string[]): { child: ChildProcess; ended: Promise<{ code: number | null; out: string }> };
  /** One session of the host to its end; what our tools answered in it. */
  session(prompt: string, ...moves: Move[]): Promise<string[]>;
  close(): Promise<void>;
}

/** To the whole group, as a terminal does. */
export function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch (error) {
    // Nobody of the group is left.
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ESRCH') throw error;
  }
}

export async function openRig(host: TestHost): Promise<HostRig> {
  const [program, ...first] = hostCommand(host.cli);
  const { status, error, stderr } = spawnSync(program, [...first, '--version'], { encoding: 'utf8', timeout: 60_000 });
  expect(status, `${host.title} cannot be started: ${error?.message ?? stderr}`).toBe(0);
  const [vendor, model] = await Promise.all([startOpenAi(), startScriptedModel()]);
  const project = await tempProject({ 'work/a.ts': 'export const a = 1;\n', 'home/.keep': '' });
  const started: ChildProcess[] = [];
  // What it may read is found by the repository around it.
  expect(spawnSync('git', ['init', '-q'], { cwd: project.path('work') }).status).toBe(0);

  const rig: HostRig = {
    vendor,
    model,
    async configure(env = {}) {
      const { settings, lines } = host;
      // Taken out first: `init` leaves what was added to its entry.
      for (const flags of [['--remove'], []]) {
        const { code, out, err } = await runProgram(['init', '--client', host.client, ...flags], {
          cwd: project.path('home'),
          env: { ...vendorEnv({ openai: vendor.url }), DEFAULT_MODEL: 'gpt-5-mini', ...env },
        });
        expect([code, err]).toEqual([0, '']);
        expect(out).toContain('polylogue');
      }
      if (lines) await appendFile(project.path(`home/${lines.file}`), lines.text);
      if (!settings) return;
      const path = project.path(`home/${settings.file}`);
      await writeFile(path, JSON.stringify(settings.amend(JSON.parse(await readFile(path, 'utf8')), model.url)));
    },
    start(args) {
      const child = spawn(program, [...first, ...args], {
        cwd: project.path('work'),
        env: {
          HOME: project.path('home'),
          PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
          OPENAI_API_KEY: 'test-key',
          ...host.env(model.url),
        },
        stdio: ['ignore', 'pipe', 'pipe'],
        // A group of its own, as a terminal gives it: some hosts work in a child of theirs.
        detached: true,
      });
      started.push(child);
      let out = '';
      for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (out += text.toString()));
      return { child, ended: once(child, 'close').then(([code]) => ({ code, out })) };
    },
    async session(prompt, ...moves) {
      model.play(prompt, ...moves);
      const { code, out } = await rig.start(host.args(prompt, model.url)).ended;
      expect({ code, unknown: model.unknown }, out).toEqual({ code: 0, unknown: [] });
      return model.asked.at(-1)?.results ?? [];
    },
    async close() {
      // Some leave a helper behind that goes on writing into the home.
      for (const child of started) signal(child, 'SIGKILL');
      await Promise.all([vendor.close(), model.close()]);
      expect(vendor.violations).toEqual([]);
      await waitUntil('the home is gone', () =>
        project.dispose().then(
          () => true,
          () => false,
        ),
      );
    },
  };
  await rig.configure();
  return rig;
}
