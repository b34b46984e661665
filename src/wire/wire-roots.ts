import type { AppConfig } from '../app/settings.ts';
import { defaultRoots, type Roots } from '../workspace/roots.ts';

/** The folders that may be read, as settings, host and working directory tell. */
export function rootsOf(
  { values: { app } }: AppConfig,
  { cwd, homeDir: home }: { cwd: string; homeDir: string },
): Promise<Roots> {
  return defaultRoots({ explicit: app.roots ?? [], projectRoot: app.claudeProjectDir, cwd, home });
}

/** Whether roots that a client lists say more of his project than what is known: nobody else named it. */
export function followsList({ values: { app } }: AppConfig, { roots }: Roots): boolean {
  const { roots: set = [], claudeProjectDir } = app;
  return set.length === 0 && (claudeProjectDir === undefined || roots.length === 0);
}
