import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { isRecord } from '../../core/json.ts';
import type { CommandContext } from '../command/command.ts';
import type { Finding } from './doctor-checks.ts';

const patienceMs = 10_000;
const client = { name: 'polylogue-doctor', version: '1' };
const modernVersion = '2026-07-28';

/** The first message of a client in each of the two protocol eras. */
const eras = [
  {
    what: 'handshake 2025-11-25',
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: client },
  },
  {
    what: `handshake ${modernVersion}`,
    method: 'server/discover',
    params: {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': modernVersion,
        'io.modelcontextprotocol/clientInfo': client,
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  },
] as const;

/** Starts this very program as a host does and says hello to it, in both eras. */
export function checkHandshakes({ launch, env, around }: Pick<CommandContext, 'launch' | 'env' | 'around'>) {
  return Promise.all(
    eras.map(async ({ what, method, params }): Promise<Finding> => {
      const startedAt = around.clock.monotonic();
      const child = spawn(launch.node, [launch.program], { cwd: around.cwd, env: { ...env }, stdio: 'pipe' });
      const { promise, resolve } = Promise.withResolvers<Finding>();
      const fails = (text: string) =>
        resolve({ state: 'fail', what, text, next: 'Start it by hand to see why: polylogue < /dev/null' });
      const stop = around.clock.after(patienceMs, () => fails(`no answer within ${patienceMs / 1_000} seconds`));
      let errors = '';
      child.stderr.on('data', chunk => {
        errors = `${errors}${chunk}`.slice(-500);
      });
      child.on('error', error => fails(error.message));
      child.on('close', code => fails(`it ended with code ${code}: ${errors.trim()}`));
      // It may be gone already; `close` tells.
      child.stdin.on('error', () => undefined);
      createInterface({ input: child.stdout }).on('line', line => {
        const ms = Math.round(around.clock.monotonic() - startedAt);
        if (isResult(line)) resolve({ state: 'ok', what, text: `answered after ${ms} ms` });
        else fails(`it answered ${line.slice(0, 200)}`);
      });
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\n`);
      const finding = await promise;
      stop();
      child.kill('SIGKILL');
      return finding;
    }),
  );
}

function isResult(line: string): boolean {
  try {
    const message: unknown = JSON.parse(line);
    return isRecord(message) && isRecord(message.result);
  } catch {
    // Something else than the protocol on stdout: no host could read it.
    return false;
  }
}
