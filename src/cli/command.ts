import type { AppConfig, Surroundings } from '../app.ts';

/** What a command gets. */
export interface CommandContext {
  /** What follows its name, without flags. */
  args: readonly string[];
  config: AppConfig;
  around: Surroundings;
  print(line: string): void;
}

export interface CommandDefinition {
  name: string;
  /** One line for `--help`. */
  summary: string;
  /** Its arguments as commander writes them, such as `[directory]`; empty when it takes none. */
  usage: string;
  /** Answers the exit code. */
  run(context: CommandContext): Promise<number>;
}

/** Typed identity; a command is one file that exports one of these. */
export function defineCommand(definition: CommandDefinition): CommandDefinition {
  return definition;
}
