/** `paths` is a list of directories or files; `list` is a list of words. */
export type OptionType = 'string' | 'number' | 'boolean' | 'list' | 'path' | 'paths' | 'url';

/** One setting: the same in the environment, on the command line and in the configuration file. */
export interface OptionSpec {
  /** Names in the environment; the first is canonical, the others are accepted too. */
  env: readonly string[];
  /** Command-line flag without dashes. Absent: environment and file only (keys never go on a command line). */
  flag?: string;
  /** How the text of the environment is read. */
  type: OptionType;
  /** The value when nobody sets one; absent: unset. */
  default?: string | number | boolean | readonly string[];
  /** One sentence for `--help`, `.env.sample` and the reference. */
  doc: string;
  /** The heading it stands under. */
  group: string;
  /** Never shown, never logged. */
  secret?: boolean;
  /** A trusted project's own `.env` may not set it: addresses, roots, commands, paths. */
  operatorOnly?: boolean;
  /** Others use its variable too: a value in the environment that can't be taken is warned of, and passed over. */
  isShared?: boolean;
  /** Allowed words, where there are few. */
  choices?: readonly string[];
  /** Other words that are understood, with the choice that each stands for. */
  synonyms?: Readonly<Record<string, string>>;
  /** Least number that is taken; absent: any. */
  min?: number;
  /** Greatest number that is taken; absent: any. */
  max?: number;
  /** Takes parts of a whole; other numbers are whole. */
  fractional?: boolean;
}

/** A server of the operator's own with an OpenAI chat interface, as the configuration file names it; checked. */
export interface EndpointSettings {
  /** Stands before the colon in `id:model`. Lower case. */
  id: string;
  /** Short forms of the id. */
  names: readonly string[];
  /** The whole base address, version path included. */
  apiUrl: string;
  apiKey?: string;
  /** Models that need no listing: ids, or entries in the form of a models file. */
  models: readonly (string | Readonly<Record<string, unknown>>)[];
  /** Tokens, for models whose window neither their entry nor the server tells. */
  contextWindow?: number;
  /** Sent with every request. */
  headers: Readonly<Record<string, string>>;
}
