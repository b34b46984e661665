import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AppConfig } from '../app/settings.ts';
import { storePlace } from '../config/derived-settings.ts';
import { readIfPresent } from '../config/settings-files.ts';
import type { HandParts } from '../engine/agent/hands/hand-parts.ts';
import type { EngineOptions } from '../engine/engine.ts';
import { languageOf } from '../engine/gather/preamble.ts';
import type { AgentTool } from '../engine/modes/agent/agent.ts';
import type { AgentRunner, RunnerParts } from '../engine/modes/agent/runner.ts';
import type { Meter } from '../models/meter.ts';

export interface AgentSurroundings
  extends Pick<RunnerParts, 'route' | 'clock' | 'random' | 'emit' | 'git' | 'home' | 'programEnv' | 'version'> {
  config: AppConfig;
  values: AppConfig['values']['app'];
  meter: Meter;
  compose: EngineOptions['compose'];
}

/** What a run of a program's own is called, and where it works. */
export type HandsOf = (run: Pick<HandParts, 'reqId' | 'scope' | 'tool' | 'root'>) => Promise<AgentTool[]>;

export interface WiredAgent extends AgentRunner {
  /** The tools of the agent, for a run that somebody else conducts. */
  hands: HandsOf;
}

/** Settings → what lets models work. All of it is loaded with the first run. */
export function wireAgent(around: AgentSurroundings): WiredAgent {
  let opened: Promise<WiredAgent> | undefined;
  const open = () => {
    opened ??= openRunner(around);
    return opened;
  };
  return {
    conduct: async (call, pipeline) => (await open()).conduct(call, pipeline),
    hands: async run => (await open()).hands(run),
    close: async () => (await opened)?.close(),
  };
}

async function openRunner({ config, values, compose, meter, ...around }: AgentSurroundings): Promise<WiredAgent> {
  const { createAgentRunner } = await import('../engine/modes/agent/runner.ts');
  const { hands } = await import('../engine/modes/agent/local-tools/local-tools.ts');
  const { usualCommands } = await import('../engine/modes/agent/local-tools/command-policy.ts');
  const { createGitHistory } = await import('../files/git/history.ts');
  const { readServerList } = await import('../engine/agent/servers/server-list.ts');
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
  const parts: RunnerParts = {
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
  };
  return { ...createAgentRunner(parts), hands: run => hands({ ...parts, ...run }, false) };
}
