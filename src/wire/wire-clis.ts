import { join } from 'node:path';
import type { AppConfig } from '../app/settings.ts';
import { readCliFiles } from '../config/definition-files.ts';
import { readIfPresent } from '../config/settings-files.ts';
import type { Clock, Emit, Random } from '../core/ports.ts';
import { type Bridge, createBridge } from '../providers/external-cli/cli-registry.ts';
import { configuredClis } from '../providers/external-cli/configured-clis.ts';

export interface CliSurroundings {
  homeDir: string;
  platform: string;
  programEnv: Readonly<Record<string, string | undefined>>;
  /** Where a CLI works when a call names no project. */
  root: string;
  clock: Clock;
  random: Random;
  emit: Emit;
}

/** Settings and the operator's files → other vendors' agents. What is wrong with the files is told as warnings. */
export function wireClis({ values: { app }, home }: AppConfig, around: CliSurroundings): Bridge {
  const places = [
    // Where PAL had them: whoever comes from there keeps them.
    { path: join(around.homeDir, '.pal', 'cli_clients') },
    { path: join(home, 'clis') },
    ...(app.cliClients === undefined ? [] : [{ path: app.cliClients, asked: true }]),
  ];
  const { files, warnings } = readCliFiles(places, readIfPresent);
  const found = configuredClis(files, app.cliTimeoutSeconds * 1_000);
  for (const message of [...warnings, ...found.warnings]) around.emit({ type: 'warning', where: 'clis', message });
  return createBridge({ ...around, mayWrite: app.cliAllowWrites && !app.readOnly }, found.clis);
}
