import { bugError, configError, type FieldError } from '../core/errors.ts';
import type { OptionSpec } from '../core/option.ts';
import { decoded } from '../core/text.ts';
import { absolutePath, pathsOf, resolveHome } from './home.ts';
import { flagsLayer, type Layer, namesLayer, type Origin, type Values } from './layers.ts';
import { areValuesOf, type OptionTables, type OptionValue, parseValue, type TableValues } from './option-values.ts';
import { readSettings, type SettingsRequest } from './settings-files.ts';

export interface ConfigSources<Tables extends OptionTables> extends Omit<SettingsRequest, 'home' | 'warn'> {
  tables: Tables;
  /** Values by flag name, with dashes or in camelCase; names that no table knows are left alone. */
  argvFlags: Values;
}

export type Config<Tables extends OptionTables> = ReturnType<typeof loadConfig<Tables>>;

/**
 * Reads all settings. The weakest place first: default, `config.json` and `.env` in POLYLOGUE_HOME, the `.env` of a
 * trusted working directory, environment, flags. Throws one error of kind `config` that names every value it can't use.
 */
export function loadConfig<Tables extends OptionTables>(sources: ConfigSources<Tables>) {
  const warnings = new Set<string>();
  const warn = (message: string): void => void warnings.add(message);
  const homeFlag = sources.argvFlags.home;
  const home = resolveHome(typeof homeFlag === 'string' ? homeFlag : undefined, sources.env, sources);
  const request = { ...sources, home, warn };
  const files = readSettings(request);
  const flags = flagsLayer(sources.cwd, sources.argvFlags, warn);
  const environment = namesLayer('environment', sources.cwd, sources.env, warn);
  // The strongest first.
  const layers = files.homeWins
    ? [flags, files.homeEnv, environment, files.projectEnv, files.document]
    : [flags, environment, files.projectEnv, files.homeEnv, files.document];
  const problems: FieldError[] = [];
  const secrets = new Set(files.own.secrets);
  const origins = new Map<string, Origin | 'default'>();
  const values: Record<string, Record<string, OptionValue>> = {};
  for (const [id, table] of Object.entries(sources.tables)) {
    const found: Record<string, OptionValue> = {};
    values[id] = found;
    for (const [name, spec] of Object.entries(table)) {
      const setting = settle(id, name, spec, layers, request);
      if (setting?.error !== undefined) problems.push(setting);
      else if (setting) {
        found[name] = setting.value;
        origins.set(`${id}.${name}`, setting.origin);
        for (const secret of secretsIn(spec, setting.value)) secrets.add(secret);
      }
    }
  }
  if (problems.length > 0) {
    const sentences = problems.map(
      ({ field, error, allowed }) => `${field}: ${error}; allowed: ${allowed?.join(', ')}.`,
    );
    throw configError(sentences.join(' '), {
      next: `Correct or remove ${problems.map(({ field }) => field).join(', ')}, then start again. Removing it restores the default.`,
      validationErrors: problems,
    });
  }
  if (!areValuesOf(sources.tables, values)) throw bugError('A table of options has no values.');
  const byTable: TableValues<Tables> = values;
  return {
    /** POLYLOGUE_HOME, absolute. It need not exist. */
    home,
    /** By table, then by option. */
    values: byTable,
    /** Where an option's value comes from; undefined when it has none. */
    sourceOf: (table: string, option: string) => origins.get(`${table}.${option}`),
    /** The values of one table as texts, as providers take them; lists are joined by commas. */
    textsOf: (table: string): Readonly<Record<string, string | undefined>> =>
      Object.fromEntries(Object.entries(values[table] ?? {}).map(([name, value]) => [name, `${value}`])),
    /** Servers of the operator's own, by the `endpoints` of `config.json`. */
    endpoints: files.own.endpoints,
    namesEndpoints: files.namesEndpoints,
    variables: files.variables,
    /** What must never be shown: values of secret options, and passwords within addresses. */
    secrets: [...secrets],
    /** What the operator should know, one sentence each. */
    warnings: [...warnings],
  };
}

/** The value of one option, or what is wrong with it, by the strongest place that sets it. A weaker place's bad value does no harm. */
function settle(id: string, option: string, spec: OptionSpec, layers: readonly Layer[], request: SettingsRequest) {
  for (const layer of layers) {
    const found = layer.find(id, option, spec);
    if (!found) continue;
    const parsed = parseValue(spec, found.raw, {
      resolve: path => absolutePath(path, layer.folder, request),
      delimiter: pathsOf(request.platform).delimiter,
    });
    if (parsed.ok) return { value: parsed.value, origin: layer.origin };
    const field = `${found.name} (${layer.origin})`;
    if (!spec.isShared || layer.origin !== 'environment')
      return { field, error: parsed.problem, allowed: [parsed.allowed] };
    request.warn(`Ignored ${field}: ${parsed.problem}; allowed: ${parsed.allowed}.`);
  }
  return spec.default === undefined ? undefined : { value: spec.default, origin: 'default' as const };
}

function secretsIn({ secret }: OptionSpec, value: OptionValue): string[] {
  if (typeof value !== 'string') return [];
  const password = URL.parse(value)?.password;
  return [...(secret ? [value] : []), ...(password ? [password, decoded(password)] : [])];
}
