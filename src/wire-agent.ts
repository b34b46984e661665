import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { storePlace } from './config/derive.ts';
import { readIfPresent } from './config/settings-files.ts';
import type { AgentRunner, RunnerParts } from './engine/agent/runner.ts';
import { languageOf } from './engine/gather/preamble.ts';
import type { EngineOptions } from './engine/run.ts';
import type { Meter } from './engine/spend/meter.ts';
import type { AppConfig } from './wire-models.ts';

export interface AgentSurroundings
  extends Pick<RunnerParts, 'route' | 'clock' | 'random' | 'emit' | 'git' | 'home' | 'programEnv' | 'version'> {
  config: AppConfig;
  values: AppConfig['values']['app'];
  meter: Meter;
  compose: EngineOptions['compose'];
}

/** Settings → what lets models work. All of it is loaded with the first run. */
export function wireAgent(around: AgentSurroundings): AgentRunner {
  let opened: Promise<AgentRunner> | undefined;
  const open = () => {
    opened ??= openRunner(around);
    return opened;
  };
  return {
    conduct: async call => (await open()).conduct(call),
    close: async () => (await opened)?.close(),
  };
}

async function openRunner({ config, values, compose, meter, ...around }: AgentSurroundings): Promise<AgentRunner> {
  const { createAgentRunner } = await import('./engine/agent/runner.ts');
  const { usualCommands } = await import('./engine/agent/hands/command-policy.ts');
  const { createGitHistory } = await import('./files/git/history.ts');
  const { readServerList } = await import('./engine/agent/servers/server-list.ts');
  const { sandbox, mask, condenser, maxFileBytes } = compose;
  const { clock, programEnv, home } = around;
  const file = values.mcpServers;
  const text = file === undefined ? '{"mcpServers": {}}' : (readIfPresent(file) ?? '');
  const list = readServerList(text);
  if ('problem' in list) {
    around.emit({ type: 'warning', where: 'agent', message: `${file} can't be used: ${list.problem}.` });
  }
  const language = languageOf(values.locale);
  const { isPrivate } = storePlace(values, config.home);
  return createAgentRunner({
    ...around,
    ...{ sandbox, mask, condenser, maxFileBytes, meter },
    askModel: meter.ask,
    history: createGitHistory({ clock, programEnv, sandbox, homeDir: home, mask }),
    backups: join(isPrivate ? tmpdir() : config.home, isPrivate ? 'polylogue-backups' : 'backups'),
    commands: values.agentCommands ?? usualCommands,
    commandMs: values.agentCommandSeconds * 1_000,
    fetches: values.agentFetch,
    policy: values.agentApprove,
    ...(values.maxCostPerRequest !== undefined && { perRequest: values.maxCostPerRequest }),
    ...(values.agentTriageModel !== undefined && { triageModel: values.agentTriageModel }),
    ...(language !== undefined && { language }),
    servers: 'problem' in list ? [] : list.servers,
  });
}
