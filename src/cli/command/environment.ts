import { type AppConfig, tables } from '../../app/app.ts';
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

/** What a server that a host starts must be told, since hosts pass on little of their own environment. */
export interface ServerEnvironment {
  values: Record<string, string>;
  references: string[];
  /** Secrets that are set here and would be missing there: writing them needs the operator's word. */
  missing: string[];
  /** Whether any key is set, wherever it is. */
  keyed: boolean;
  /** Whether a server is named that may want none. */
  ownServer: boolean;
  /** Flags of this command line that set options. */
  args: string[];
}

/** They belong to one project or one session, not to an entry that outlasts both. */
const ofThisSession = new Set(['roots', 'claudeProjectDir']);

/** Addresses of servers of the operator's own. */
const ownServers = new Set(['CUSTOM_API_URL', 'OLLAMA_HOST']);

export function serverEnvironment({ config, env, copied, refers }: EnvironmentRequest): ServerEnvironment {
  const found: ServerEnvironment = {
    values: {},
    references: [],
    missing: [],
    keyed: false,
    ownServer: config.endpoints.length > 0,
    args: [],
  };
  for (const name of copied) found.values[name] = copiedValue(name, env);
  for (const { table, name, spec } of allOptions()) {
    const source = config.sourceOf(table, name);
    if (source !== undefined && spec.secret) found.keyed = true;
    if (source !== undefined && ownServers.has(spec.env[0] ?? '')) found.ownServer = true;
    if (source === 'flag' && spec.flag !== undefined) {
      found.args.push(...flagOf(spec, config.textsOf(table)[name] ?? ''));
    }
    if (source !== 'environment' || (table === 'app' && ofThisSession.has(name))) continue;
    const variable = spec.env.find(candidate => env[candidate]?.trim());
    const value = variable === undefined ? undefined : env[variable];
    if (variable === undefined || value === undefined || Object.hasOwn(found.values, variable)) continue;
    if (!(spec.secret === true || (URL.parse(value)?.password ?? '') !== '')) found.values[variable] = value;
    else if (refers) found.references.push(variable);
    else found.missing.push(variable);
  }
  return found;
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
