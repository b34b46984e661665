import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { BenchFolder } from './measure/bench-folder.ts';
import { load } from './measure/load.ts';
import { type Contenders, type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { cpuMs, openSession, residentMb } from './measure/session.ts';
import { figure, type Table, times } from './measure/table.ts';
import { product } from './product.ts';
import { openVendorThread } from './yardsticks/vendor-thread.ts';

const roundCount = Number(process.env.BENCH_ROUNDS ?? 7);
/** As for the floor: V8 optimizes what a call runs when it has run some hundred times. */
const warmUp = { rounds: 8, calls: 500, together: 8 };
const callsPerRound = 80;
const callsTogether = 160;
const together = 32;
const patienceMs = 60_000;

const portkey = 'Portkey';

/** The most of Portkey's processor time that a chat may take. */
const lines = { 'Polylogue, store in memory': 1, 'Polylogue, SQLite FULL': 2 } as const;

/** Whatever answers a question, and the process whose time is counted. */
interface Contender {
  pid: number | undefined;
  ask(question: string): Promise<unknown>;
  close(): Promise<unknown>;
}

/**
 * A tiny chat through this server, which keeps it, and through gateways, which keep nothing. They are looked for in the folder that
 * `BENCH_GATEWAYS` names: Portkey in its node_modules (it fails to stream with a newer server of Hono), LiteLLM in a Python environment
 * `venv`.
 */
export async function gateways(folder: BenchFolder): Promise<Table | undefined> {
  const installed = process.env.BENCH_GATEWAYS;
  const started = installed === undefined ? {} : startersOf(resolve(installed), folder);
  if (Object.keys(started).length === 0) {
    console.error(
      `gateways: none is installed. Make a folder DIR with:
  echo '{"overrides":{"@hono/node-server":"1.13.8"}}' > DIR/package.json
  npm install --prefix DIR @portkey-ai/gateway@1.15.2
  python3 -m venv DIR/venv && DIR/venv/bin/pip install 'litellm[proxy]'
and set BENCH_GATEWAYS=DIR.`,
    );
    return undefined;
  }
  const vendor = await openVendorThread(0);
  const opened: Record<string, Contender> = {};
  try {
    for (const [name, start] of Object.entries(started)) opened[name] = await start(vendor.url);
    opened['Polylogue, store in memory'] = await ours(folder, vendor.url, { POLYLOGUE_STORE: 'memory' });
    opened['Polylogue, SQLite FULL'] = await ours(folder, vendor.url);
    const each = (measure: (contender: Contender) => Promise<Figures>): Contenders =>
      Object.fromEntries(Object.entries(opened).map(([name, contender]) => [name, () => measure(contender)]));
    await inRounds(warmUp.rounds, each(warmedUp), 0);
    const rounds = await inRounds(roundCount, each(cost));
    const toPortkey = (name: string) => ratio(rounds, 'cpu', name, portkey);
    const rows = Object.entries(opened).map(([name, { pid }]) => [
      name,
      figure(typical(rounds, name, 'cpu'), 2),
      opened[portkey] ? times(toPortkey(name)) : '',
      figure(typical(rounds, name, 'p50'), 2),
      figure(typical(rounds, name, 'rate'), 0),
      figure(typical(rounds, name, 'cpuTogether'), 2),
      figure(residentMb(pid), 0),
    ]);
    return {
      title: `gateways: a tiny chat, vendor answers at once (${roundCount} rounds after ${warmUp.rounds * warmUp.calls} calls each)`,
      columns: [
        'server',
        'CPU ms a call',
        `to ${portkey}`,
        'p50 ms',
        `calls/s at ${together}`,
        'CPU ms then',
        'RSS MB',
      ],
      rows,
      notes: Object.entries(lines).map(
        ([name, most]) => `To cross: ${name}, ${most} times the CPU time of ${portkey}.`,
      ),
    };
  } finally {
    await Promise.all(Object.values(opened).map(contender => contender.close()));
    await vendor.close();
  }
}

let asked = 0;

/** Each question is another one. */
const asking = (contender: Contender) => () => contender.ask(`What is the shortest answer to question ${++asked}?`);

const warmedUp = (contender: Contender) => load(warmUp.calls, warmUp.together, asking(contender));

async function cost(contender: Contender): Promise<Figures> {
  const { pid } = contender;
  const next = asking(contender);
  const before = cpuMs(pid);
  const { p50 = Number.NaN } = await load(callsPerRound, 1, next);
  const [cpu, begun] = [cpuMs(pid), performance.now()];
  await load(callsTogether, together, next);
  return {
    p50,
    cpu: (cpu - before) / callsPerRound,
    rate: callsTogether / ((performance.now() - begun) / 1_000),
    cpuTogether: (cpuMs(pid) - cpu) / callsTogether,
  };
}

async function ours(folder: BenchFolder, vendorUrl: string, more: Record<string, string> = {}): Promise<Contender> {
  const { session } = await openSession(product(folder, vendorUrl, more));
  return {
    pid: session.pid,
    ask: prompt => session.call('chat', { prompt, model: 'gpt-5' }),
    close: () => session.close(),
  };
}

/** How each gateway is started that is installed there. */
function startersOf(place: string, folder: BenchFolder): Record<string, (vendorUrl: string) => Promise<Contender>> {
  const portkeyProgram = join(place, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  const litellm = join(place, 'venv/bin/litellm');
  return {
    ...(existsSync(portkeyProgram) && {
      [portkey]: async (vendorUrl: string) => {
        const port = await freePort();
        const env = { ...folder.env, TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost', NODE_ENV: 'production' };
        const child = spawn(process.execPath, [portkeyProgram, `--port=${port}`, '--headless'], {
          env,
          stdio: 'ignore',
        });
        return gateway(portkey, child, port, { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': vendorUrl });
      },
    }),
    ...(existsSync(litellm) && {
      LiteLLM: async (vendorUrl: string) => {
        const port = await freePort();
        const config = join(folder.fresh('litellm'), 'config.json');
        const params = { model: 'openai/gpt-5', api_base: vendorUrl, api_key: 'test-key' };
        // Its file is YAML, of which JSON is a part.
        writeFileSync(config, JSON.stringify({ model_list: [{ model_name: 'gpt-5', litellm_params: params }] }));
        const env = {
          ...folder.env,
          LITELLM_LOCAL_MODEL_COST_MAP: 'True',
          LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true',
        };
        const args = ['--config', config, '--port', `${port}`, '--host', '127.0.0.1', '--num_workers', '1'];
        return gateway(
          'LiteLLM',
          spawn(litellm, [...args, '--telemetry', 'False'], { env, stdio: 'ignore' }),
          port,
          {},
        );
      },
    }),
  };
}

/** A gateway that speaks OpenAI's chat completions, once it answers. */
async function gateway(
  name: string,
  child: ChildProcess,
  port: number,
  more: Record<string, string>,
): Promise<Contender> {
  const ended = once(child, 'exit');
  const headers = { 'content-type': 'application/json', authorization: 'Bearer test-key', ...more };
  const ask = async (content: string) => {
    const body = JSON.stringify({ model: 'gpt-5', stream: true, messages: [{ role: 'user', content }] });
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: 'POST', headers, body });
    const text = await response.text();
    if (!text.includes('A short answer')) throw new Error(`${name} answered ${response.status}: ${text.slice(0, 500)}`);
  };
  const close = () => {
    child.kill('SIGTERM');
    return ended;
  };
  const until = performance.now() + patienceMs;
  for (;;) {
    try {
      await ask('Are you there?');
      return { pid: child.pid, ask, close };
    } catch (error) {
      if (child.exitCode !== null || performance.now() > until) {
        if (child.exitCode === null) await close();
        throw error;
      }
      await wait(200);
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || address === null) throw new Error('no port is free');
  return address.port;
}
