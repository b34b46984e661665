/** `paths` is a list of directories or files; `list` is a list of words. */
export type OptionType = 'string' | 'number' | 'boolean' | 'list' | 'path' | 'paths' | 'url';

/** One setting: the same in the environment, on the command line and in the configuration file. */
export interface OptionSpec {
  /** Names in the environment; the first is canonical, the others are accepted too. */
  env: readonly string[];
  /** Command-line flag without dashes. Absent: environment and file only (keys never go on a command line). */
  flag?: string;
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
  /** Allowed words, where there are few. */
  choices?: readonly string[];
  /** Other words that are understood, with the choice that each stands for. */
  synonyms?: Readonly<Record<string, string>>;
  min?: number;
  max?: number;
  /** Takes parts of a whole; other numbers are whole. */
  fractional?: boolean;
}
