import { parseEnv } from 'node:util';

export interface EnvFile {
  values: Readonly<Record<string, string>>;
  /** Names whose value ends at a `#` that was probably meant to belong to it. */
  cut: readonly string[];
}

/** Reads the text of a `.env` file: `NAME=value` lines, quotes, `#` comments, `export`. Values are not expanded. */
export function parseEnvFile(text: string): EnvFile {
  const content = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const values: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(parseEnv(content))) if (value !== undefined) values[name] = value;
  const cut = content.split(/\r?\n/).flatMap(line => {
    // Other readers keep a `#` without a space before it; the built-in one starts a comment there.
    const name = /^\s*(?:export\s+)?([\w.-]+)\s*=\s*(?!["'`])[^\s#]+#\S/.exec(line)?.[1];
    return name === undefined ? [] : [name];
  });
  return { values, cut };
}
