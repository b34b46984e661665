import { allowedText, defaultText } from '../../src/config/option-values.ts';
import type { OptionSpec } from '../../src/core/option.ts';
import { cell, code, table } from './markdown.ts';

type Specs = Readonly<Record<string, OptionSpec>>;

const introduction = `# Options

Every option is set by its name in the environment, in upper case. The other places, the weakest first: \`config.json\` in POLYLOGUE_HOME (by
the same name, or by the key in lower case, where a dot stands for a nested object), \`.env\` in POLYLOGUE_HOME, the \`.env\` of a
working directory that you trust, the environment, the command line (\`--flag\`). An option marked † is refused in the \`.env\` of a working
directory: what comes with a cloned repository must not decide where your keys go or what may be read.`;

const heading = ['environment, flag, key', 'takes', 'what it does'];

/** The reference of all options, in Markdown. */
export function describeOptions(specs: Specs): string {
  const sections = byGroup(specs).map(
    ([group, entries]) =>
      `## ${group}\n\n${table(
        heading,
        entries.map(([name, spec]) => cellsOf(name, spec)),
      )}`,
  );
  return `${[introduction, ...sections].join('\n\n')}\n`;
}

function cellsOf(name: string, spec: OptionSpec): string[] {
  const value = spec.secret ? undefined : defaultText(spec);
  const cells = [
    [...spec.env, ...(spec.flag === undefined ? [] : [`--${spec.flag}`]), name].map(code).join(', ') +
      (spec.operatorOnly ? ' †' : ''),
    (spec.secret ? 'a secret' : allowedText(spec)) + (value ? ` (default: ${code(value)})` : ''),
    spec.doc,
  ];
  return cells.map(cell);
}

/** A `.env` file with every option in it, all commented out. */
export function envSample(specs: Specs): string {
  const sections = byGroup(specs).map(([group, entries]) =>
    [`# ${group}`, ...entries.map(([, spec]) => sampleEntry(spec))].join('\n\n'),
  );
  return `${sections.join('\n\n\n')}\n`;
}

function sampleEntry(spec: OptionSpec): string {
  const [name = '', ...others] = spec.env;
  const also = others.length === 0 ? '' : ` Also read: ${others.join(', ')}.`;
  const takes = spec.secret || spec.type === 'string' ? '' : ` Takes ${allowedText(spec)}.`;
  const choices = spec.choices && spec.type === 'string' ? ` One of ${spec.choices.join(', ')}.` : '';
  const value = spec.secret ? `your_${name.toLowerCase()}_here` : (defaultText(spec) ?? '');
  return `# ${spec.doc.replace(/\s+/g, ' ')}${takes}${choices}${also}\n# ${name}=${value}`;
}

/** In the order in which the groups first occur. */
function byGroup(specs: Specs): [string, [string, OptionSpec][]][] {
  return [...Map.groupBy(Object.entries(specs), ([, { group }]) => group)];
}
