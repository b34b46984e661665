import { bugError, configError, type FieldError } from '../core/errors.ts';
import type { EndpointSettings, OptionSpec } from '../core/option.ts';
import { decoded } from '../core/text.ts';
import { absolutePath, type MachineEnvironment, pathsOf, resolveHome } from './home.ts';
import { flagsLayer, type Layer, namesLayer, type Origin, type Values } from './layers.ts';
import { areValuesOf, type OptionTables, type OptionValue, parseValue, type TableValues } from './option-values.ts';
import { readSettings, type Settings, type SettingsRequest } from './settings-files.ts';

export interface ConfigSources<Tables extends OptionTables> extends Omit<SettingsRequest, 'home' | 'warn'> {
  tables: Tables;
  /** Values by flag name, with dashes or in camelCase; names that no table knows are left alone. */
  argvFlags: Values;
}

export interface Config<Tables extends OptionTables> extends Pick<Settings, 'namesEndpoints' | 'variables'> {
  /** POLYLOGUE_HOME, absolute. It need not exist. */
  home: string;
  /** By table, then by option. */
  values: TableValues<Tables>;
  /** Where an option's value comes from; undefined when it has none. */
  sourceOf(table: string, option: string): Origin | 'default' | undefined;
  /** The values of one table as texts, as providers take them; lists are joined by commas. */
  textsOf(table: string): Readonly<Record<string, string | undefined>>;
  /** Servers of the operator's own, by the `endpoints` of `config.json`. */
  endpoints: readonly EndpointSettings[];
  /** What must never be shown: values of secret options, and passwords within addresses. */
  secrets: readonly string[];
  /** What the operator should know, one sentence each. */
  warnings: readonly string[];
}

interface Setting {
  value: OptionValue;
  origin: Origin | 'default';
}

/**
 * Reads all settings. The weakest place first: default, `config.json` and `.env` in POLYLOGUE_HOME, the `.env` of a
 * trusted working directory, environment, flags. Throws one error of kind `config` that names every value it can't use.
 */
export function loadConfig<Tables extends OptionTables>(sources: ConfigSources<Tables>): Config<Tables> {
  const warnings = new Set<string>();
  const warn = (message: string): void => void warnings.add(message);
  const homeFlag = sources.argvFlags.home;
  const home = resolveHome(typeof homeFlag === 'string' ? homeFlag : undefined, sources.env, sources);
  const files = readSettings({ ...sources, home, warn });
  const flags = flagsLayer(sources.cwd, sources.argvFlags, warn);
  const environment = namesLayer('environment', sources.cwd, sources.env, warn);
  // The strongest first.
  const layers = files.homeWins
    ? [flags, files.homeEnv, environment, files.projectEnv, files.document]
    : [flags, environment, files.projectEnv, files.homeEnv, files.document];
  const problems: FieldError[] = [];
  const secrets = new Set(files.own.secrets);
  const settings = new Map<string, Map<string, Setting>>();
  const values: Record<string, Record<string, OptionValue>> = {};
  for (const [id, table] of Object.entries(sources.tables)) {
    const found = new Map<string, Setting>();
    for (const [name, spec] of Object.entries(table)) {
      const setting = settle(id, name, spec, layers, sources);
      if (!setting) continue;
      if (setting.error !== undefined) problems.push(setting);
      else {
        found.set(name, setting);
        for (const secret of secretsIn(spec, setting.value)) secrets.add(secret);
      }
    }
    settings.set(id, found);
    values[id] = Object.fromEntries([...found].map(([name, { value }]) => [name, value]));
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
  return {
    home,
    values,
    sourceOf: (table, option) => settings.get(table)?.get(option)?.origin,
    textsOf: table =>
      Object.fromEntries([...(settings.get(table) ?? [])].map(([name, { value }]) => [name, `${value}`])),
    endpoints: files.own.endpoints,
    namesEndpoints: files.namesEndpoints,
    variables: files.variables,
    secrets: [...secrets],
    warnings: [...warnings],
  };
}

/** The value of one option, or what is wrong with it, by the strongest place that sets it. A weaker place's bad value does no harm. */
function settle(id: string, option: string, spec: OptionSpec, layers: readonly Layer[], machine: MachineEnvironment) {
  for (const layer of layers) {
    const found = layer.find(id, option, spec);
    if (!found) continue;
    const parsed = parseValue(spec, found.raw, {
      resolve: path => absolutePath(path, layer.folder, machine),
      delimiter: pathsOf(machine.platform).delimiter,
    });
    if (parsed.ok) return { value: parsed.value, origin: layer.origin };
    return { field: `${found.name} (${layer.origin})`, error: parsed.problem, allowed: [parsed.allowed] };
  }
  return spec.default === undefined ? undefined : { value: spec.default, origin: 'default' as const };
}

function secretsIn({ secret }: OptionSpec, value: OptionValue): string[] {
  if (typeof value !== 'string') return [];
  const password = URL.parse(value)?.password;
  return [...(secret ? [value] : []), ...(password ? [password, decoded(password)] : [])];
}
