import { isRecord } from '../core/json.ts';
import type { OptionSpec } from '../core/option.ts';
import { isPlaceholder } from '../core/text.ts';

/** Where a value was set, the weakest place first. */
export type Origin = 'config.json' | 'home .env' | 'project .env' | 'environment' | 'flag';

/** A value as it stands in its place, with the name that it has there. */
export interface FoundValue {
  raw: unknown;
  name: string;
}

/** One place where values are set. */
export interface Layer {
  origin: Origin;
  /** Relative paths of this place start here. */
  folder: string;
  /** Empty values and placeholders count as unset. */
  find(table: string, option: string, spec: OptionSpec): FoundValue | undefined;
}

export type Values = Readonly<Record<string, unknown>>;

type Warn = (message: string) => void;

/** Names and values, as a process and a `.env` file have them. */
export function namesLayer(origin: Origin, folder: string, values: Values, warn: Warn): Layer {
  return { origin, folder, find: (_table, _option, spec) => findByEnvName(spec, values, origin, warn) };
}

/** A JSON document: options by their environment names, by their own names, and a provider's in an object under its id. */
export function documentLayer(folder: string, document: Values, warn: Warn): Layer {
  const origin = 'config.json';
  return {
    origin,
    folder,
    find(table, option, spec) {
      const section = table === 'app' ? document : own(document, table);
      const raw = isRecord(section) ? own(section, option) : undefined;
      const name = table === 'app' ? option : `${table}.${option}`;
      // The option `offline` and the settings of a provider of that name can share a key; the shape tells them apart.
      const found = isRecord(raw) ? undefined : setValue(raw, name, origin, warn);
      return found ?? findByEnvName(spec, document, origin, warn);
    },
  };
}

/** Flags by their name, with dashes or in camelCase. */
export function flagsLayer(folder: string, flags: Values, warn: Warn): Layer {
  const origin = 'flag';
  return {
    origin,
    folder,
    find(_table, _option, { flag }) {
      if (flag === undefined) return undefined;
      const camelCase = flag.replace(/-([a-z])/g, (_dash, letter: string) => letter.toUpperCase());
      return setValue(own(flags, flag) ?? own(flags, camelCase), `--${flag}`, origin, warn);
    },
  };
}

function findByEnvName({ env }: OptionSpec, values: Values, origin: Origin, warn: Warn): FoundValue | undefined {
  const [first, ...others] = env.flatMap(name => setValue(own(values, name), name, origin, warn) ?? []);
  const other = others.find(({ raw }) => raw !== first?.raw);
  if (first && other) warn(`${first.name} and ${other.name} (${origin}) differ; ${first.name} counts.`);
  return first;
}

const own = (record: Values, key: string): unknown => (Object.hasOwn(record, key) ? record[key] : undefined);

/** What a place sets; undefined where it sets nothing. */
function setValue(raw: unknown, name: string, origin: Origin, warn: Warn): FoundValue | undefined {
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw !== 'string') return { raw, name };
  const text = raw.trim();
  if (!isPlaceholder(text)) return text === '' ? undefined : { raw: text, name };
  warn(`Ignored ${name} (${origin}): it still contains a placeholder.`);
  return undefined;
}
