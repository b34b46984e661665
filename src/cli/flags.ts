/** The flags of a command by name, as they were given. */
export type Flags = Readonly<Record<string, unknown>>;

export function textFlag(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
}

/** The values of a flag that may be repeated. */
export function listFlag(flags: Flags, name: string): string[] {
  const value = flags[name];
  return Array.isArray(value) ? value.map(String) : [];
}

/** The words of a flag that may be repeated and takes several at once, between commas. */
export function wordsFlag(flags: Flags, name: string): string[] {
  return listFlag(flags, name)
    .flatMap(value => value.split(','))
    .flatMap(word => word.trim() || []);
}

/** Whether a flag without a value was given. */
export function isOn(flags: Flags, name: string): boolean {
  return flags[name] === true;
}
