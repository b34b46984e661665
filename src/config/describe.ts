import type { OptionSpec } from '../core/option.ts';
import type { OptionTable } from './option-values.ts';
import { allowedText } from './option-values.ts';

type NamedSpec = readonly [name: string, spec: OptionSpec];

const introduction = `# Options

Every option is set by its name in the environment. The other places, the weakest first: \`config.json\` in POLYLOGUE_HOME (by the
same name, or by the key in the third column, where a dot stands for a nested object), \`.env\` in POLYLOGUE_HOME, the \`.env\` of a
working directory that you trust, the environment, the command line. An option marked † is refused in the \`.env\` of a working
directory: what comes with a cloned repository must not decide where your keys go or what may be read.`;

/** The reference of all options, in Markdown. */
export function describeOptions(specs: OptionTable): string {
  const sections = [...byGroup(specs)].map(([group, entries]) => {
    const rows = entries.map(([name, spec]) => optionRow(name, spec));
    return [`## ${group}`, '', ...tableHead, ...rows].join('\n');
  });
  return `${[introduction, ...sections].join('\n\n')}\n`;
}

const tableHead = [
  '| environment | flag | key | takes | default | what it does |',
  '| --- | --- | --- | --- | --- | --- |',
];

function optionRow(name: string, spec: OptionSpec): string {
  const cells = [
    spec.env.map(code).join(', ') + (spec.operatorOnly ? ' †' : ''),
    spec.flag === undefined ? '' : code(`--${spec.flag}`),
    code(name),
    spec.secret ? 'a secret' : allowedText(spec),
    spec.default === undefined || spec.secret ? '' : code(plain(spec.default)),
    spec.doc,
  ];
  return `| ${cells.map(cell => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
}

/** A `.env` file with every option in it, all commented out. */
export function envSample(specs: OptionTable): string {
  const sections = [...byGroup(specs)].map(([group, entries]) => {
    const options = entries.map(([, spec]) => sampleEntry(spec));
    return [`# ${group}`, ...options].join('\n\n');
  });
  return `${sections.join('\n\n\n')}\n`;
}

function sampleEntry(spec: OptionSpec): string {
  const [name, ...others] = spec.env;
  const also = others.length === 0 ? '' : ` Also read: ${others.join(', ')}.`;
  const takes = spec.secret || spec.type === 'string' ? '' : ` Takes ${allowedText(spec)}.`;
  const choices = spec.choices && spec.type === 'string' ? ` One of ${spec.choices.join(', ')}.` : '';
  return `# ${oneLine(spec.doc)}${takes}${choices}${also}\n# ${name}=${sampleValue(spec, name)}`;
}

function sampleValue(spec: OptionSpec, name = ''): string {
  if (spec.secret) return `your_${name.toLowerCase()}_here`;
  return spec.default === undefined ? '' : plain(spec.default);
}

/** The flags and what they do, one a paragraph, for `--help`. */
export function flagHelp(specs: OptionTable): string {
  const sections = [...byGroup(specs)].flatMap(([group, entries]) => {
    const flags = entries.flatMap(([, spec]) => (spec.flag === undefined ? [] : [flagEntry(spec, spec.flag)]));
    return flags.length === 0 ? [] : [[`${group}:`, ...flags].join('\n')];
  });
  return `${sections.join('\n\n')}\n`;
}

function flagEntry(spec: OptionSpec, flag: string): string {
  const facts = [
    ...(spec.choices ? [spec.choices.join(', ')] : []),
    ...(spec.default === undefined || spec.type === 'boolean' ? [] : [`default: ${plain(spec.default)}`]),
    spec.env[0],
  ];
  return `  ${`--${flag}${placeholder(spec)}`.padEnd(26)} ${oneLine(spec.doc)} (${facts.join('; ')})`;
}

function placeholder(spec: OptionSpec): string {
  switch (spec.type) {
    case 'boolean':
      return '';
    case 'number':
      return ' <number>';
    case 'list':
      return ' <a,b>';
    case 'paths':
      return ' <paths>';
    case 'path':
      return ' <path>';
    case 'url':
      return ' <address>';
    case 'string':
      return spec.choices ? ' <word>' : ' <text>';
  }
}

/** In the order in which the groups first occur. */
function byGroup(specs: OptionTable): Map<string, NamedSpec[]> {
  return Map.groupBy(Object.entries(specs), ([, { group }]) => group);
}

function plain(value: NonNullable<OptionSpec['default']>): string {
  return typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value);
}

function code(text: string): string {
  return `\`${text}\``;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ');
}
