import { type AppConfig, tables } from '../../app/settings.ts';
import { inputError } from '../../core/errors.ts';
import type { OptionSpec } from '../../core/option.ts';

export interface EnvironmentRequest {
  config: Pick<AppConfig, 'sourceOf' | 'textsOf' | 'endpoints'>;
  env: Readonly<Record<string, string | undefined>>;
  /** Names whose values are to be copied, by the operator's word. */
  copied: readonly string[];
  /** Whether the host can take a variable from its own environment. */
  refers: boolean;
}

export type ServerEnvironment = ReturnType<typeof serverEnvironment>;

/** They belong to one project or one session, not to an entry that outlasts both. */
const ofThisSession = new Set(['roots', 'claudeProjectDir']);

/** Addresses of servers of the operator's own. */
const ownServers = new Set(['CUSTOM_API_URL', 'OLLAMA_HOST']);

/** What a server that a host starts must be told, since hosts pass on little of their own environment. */
export function serverEnvironment({ config, env, copied, refers }: EnvironmentRequest) {
  const values = Object.fromEntries(copied.map(name => [name, copiedValue(name, env)]));
  const references: string[] = [];
  const missing: string[] = [];
  const args: string[] = [];
  let keyed = false;
  let ownServer = config.endpoints.length > 0;
  for (const { table, name, spec } of allOptions()) {
    const source = config.sourceOf(table, name);
    if (source !== undefined && spec.secret) keyed = true;
    if (source !== undefined && ownServers.has(spec.env[0] ?? '')) ownServer = true;
    if (source === 'flag' && spec.flag !== undefined) args.push(...flagOf(spec, config.textsOf(table)[name] ?? ''));
    if (source !== 'environment' || (table === 'app' && ofThisSession.has(name))) continue;
    const variable = spec.env.find(candidate => env[candidate]?.trim());
    const value = variable === undefined ? undefined : env[variable];
    if (variable === undefined || value === undefined || Object.hasOwn(values, variable)) continue;
    if (!(spec.secret === true || (URL.parse(value)?.password ?? '') !== '')) values[variable] = value;
    else if (refers) references.push(variable);
    else missing.push(variable);
  }
  return {
    values,
    references,
    /** Secrets that are set here and would be missing there: writing them needs the operator's word. */
    missing,
    /** Whether any key is set, wherever it is. */
    keyed,
    /** Whether a server is named that may want none. */
    ownServer,
    /** Flags of this command line that set options. */
    args,
  };
}

function copiedValue(name: string, env: EnvironmentRequest['env']): string {
  const value = env[name];
  if (value) return value;
  throw inputError(`--env ${name}: there is no variable of that name, or it is empty.`, {
    next: `Set it first, as in: ${name}=… polylogue init … --env ${name}`,
  });
}

/** All options with their tables and names. */
export const allOptions = (): { table: string; name: string; spec: OptionSpec }[] =>
  Object.entries(tables).flatMap(([table, specs]) =>
    Object.entries<OptionSpec>(specs).map(([name, spec]) => ({ table, name, spec })),
  );

function flagOf({ flag, type }: OptionSpec, value: string): string[] {
  if (type === 'boolean') return value === 'true' ? [`--${flag}`] : [];
  return [`--${flag}`, value];
}
