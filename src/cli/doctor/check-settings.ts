import { tables } from '../../app/app.ts';
import type { OptionSpec } from '../../core/option.ts';
import type { CommandContext } from '../command/command.ts';
import type { Finding } from './doctor-checks.ts';

/** What the loader had to say, and where each option that is set comes from. */
export function checkSettings({ config }: CommandContext): Finding[] {
  const warnings = config.warnings.map((text): Finding => ({ state: 'warn', what: 'configuration', text }));
  const set = Object.entries(tables).flatMap(([table, specs]) =>
    Object.entries<OptionSpec>(specs).flatMap(([name, spec]): Finding[] => {
      const source = config.sourceOf(table, name);
      if (source === undefined || source === 'default') return [];
      const value = config.textsOf(table)[name] ?? '';
      return [{ state: 'note', what: spec.env[0] ?? name, text: `${shown(spec, value)} (${source})` }];
    }),
  );
  const none: Finding[] = [{ state: 'note', what: 'configuration', text: 'nothing is set: all defaults' }];
  return [...warnings, ...(set.length > 0 ? set : none)];
}

/** Keys never, passwords within addresses neither. */
function shown({ secret }: OptionSpec, value: string): string {
  if (secret) return 'set, not shown';
  const url = URL.parse(value);
  // A password with a sign that has to be written in another way ends the host before its time, or all of the address.
  const odd = url?.host ? /[@#]/.test(`${url.pathname}${url.hash}`) : /\/\/.*@/.test(value);
  if (odd) return 'an address that is not shown: part of it may be a password';
  if (!url?.host) return value;
  if (url.username === '' && url.password === '' && url.search === '') return value;
  return `${url.protocol}//${url.host}${url.pathname}, with what is not shown`;
}
