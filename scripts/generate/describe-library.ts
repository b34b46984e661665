import { readDocument, slug } from '../doc-links/read-document.ts';
import { createReader, type Declared, type DeclaredMember, plainName, type Reader } from './library-declarations.ts';
import { cell, table } from './markdown.ts';

const entry = 'src/index.ts';

const introduction = `# Library reference

Every name that the package \`polylogue\` exports, from the docstrings of its source. [The guide](../library.md) has examples that are
compiled and run. A member with \`?\` may be left out: where no default is named, there is none then, and a boolean is false.`;

const groups: readonly [title: string, holds: (one: Declared) => boolean][] = [
  ['Errors', ({ file }) => file.endsWith('/errors.ts')],
  ['Functions', ({ kind }) => kind === 'function'],
  ['Values', ({ kind }) => kind === 'value'],
  ['Types', () => true],
];

const order = ['Functions', 'Values', 'Types', 'Errors'];

interface Named extends Declared {
  name: string;
  /** Exported interfaces whose members it has too. */
  links: string[];
}

/**
 * The reference of what src/index.ts exports, in Markdown. Examples are those of `guide`; `troubleshooting` has a section for each
 * error code. Throws when something is not described.
 */
export async function describeLibrary(root: string, guide: string, troubleshooting: string): Promise<string> {
  const reader = createReader(root);
  const exported = await reader.exported(entry);
  const all: Named[] = [];
  for (const [name, one] of exported) {
    const links = one.bases.filter(base => base.isWhole && exported.has(base.name)).map(base => base.name);
    const members = await membersWithInherited(reader, one, links);
    const isCode = name === 'ErrorCode';
    all.push({
      ...one,
      name,
      links,
      members: isCode ? members.map(code => explained(code, troubleshooting)) : members,
    });
  }
  const examples = examplesIn(guide);
  const named = await Promise.all(all.map(one => unexported(reader, one, exported)));
  const problems = [...all.flatMap(one => [...undescribed(one), ...withoutExample(one, examples)]), ...named.flat()];
  if (problems.length > 0) throw new Error(problems.join('\n'));
  return pageOf(all, examples);
}

/** The members of an interface and of all that it extends, but for those of interfaces that it links to. */
async function membersWithInherited(
  reader: Reader,
  one: Declared,
  links: readonly string[],
): Promise<DeclaredMember[]> {
  const inherited: DeclaredMember[] = [];
  for (const { name, change } of one.bases.filter(base => !(base.isWhole && links.includes(base.name)))) {
    const base = await reader.find(one.file, name);
    if (await reader.isOfPackage(one.file, name)) continue;
    if (!base) throw new Error(`${one.file}: the members of "${name}" are not found, for "${one.signature}"`);
    inherited.push(...change(await membersWithInherited(reader, base, [])));
  }
  return [...inherited, ...one.members];
}

function pageOf(all: readonly Named[], examples: Examples): string {
  const grouped = Map.groupBy(all, one => groups.find(([, holds]) => holds(one))?.[0] ?? '');
  const sections = order.map(title => {
    const list = (grouped.get(title) ?? []).toSorted((a, b) => a.name.localeCompare(b.name, 'en'));
    return [title, list] as const;
  });
  const anchors = anchorsOf(sections.flatMap(([title, list]) => [title, ...list.map(({ name }) => name)]));
  const linkTo = (name: string): string => `[${name}](#${anchors.get(name)})`;
  const contents = sections.map(([title, list]) => `- ${title}: ${list.map(({ name }) => linkTo(name)).join(', ')}`);
  const texts = sections.flatMap(([title, list]) => [
    `## ${title}`,
    ...list.map(one => section(one, examples, linkTo)),
  ]);
  return [introduction, contents.join('\n'), ...texts].join('\n\n');
}

/** Headings → their anchors on the page: the second of two that differ by case alone has a number. */
function anchorsOf(headings: readonly string[]): Map<string, string> {
  const anchors = [...readDocument(headings.map(heading => `## ${heading}`).join('\n')).anchors];
  return new Map(headings.map((heading, at) => [heading, anchors[at] ?? '']));
}

/** An error code with the first sentence of its section. */
function explained(code: DeclaredMember, troubleshooting: string): DeclaredMember {
  const id = code.name.replaceAll("'", '');
  const start = `\n## ${id}\n\n`;
  const at = troubleshooting.indexOf(start);
  const doc = at < 0 ? '' : (/^.*?\.(?=\s)/s.exec(troubleshooting.slice(at + start.length))?.[0] ?? '');
  return doc === '' ? code : { ...code, doc: `${doc} [What to do](../troubleshooting.md#${id.toLowerCase()}).` };
}

/** What has no docstring, numbers without a default, and parameters that the docstring of their function does not name in backticks. */
function undescribed({ name, file, doc, members, parameters }: Named): string[] {
  return [
    ...(doc === '' ? [`${file}: "${name}" has no docstring`] : []),
    ...members
      .filter(member => member.doc === '' && !records.test(name))
      .map(member => `${file}: "${name}.${plainName(member)}" has no docstring`),
    ...members
      .filter(
        member =>
          member.name.endsWith('?') && member.type === 'number' && !/default|absent/i.test(member.doc || 'absent'),
      )
      .map(member => `${file}: the docstring of "${name}.${plainName(member)}" does not say what holds without it`),
    ...parameters
      .filter(parameter => doc !== '' && !doc.includes(`\`${parameter}\``))
      .map(parameter => `${file}: the docstring of "${name}" does not say what \`${parameter}\` is`),
  ];
}

/** Plain records that others name: what a member holds is told by its name, or by the docstring of the whole. */
const records =
  /^(?:AgentEvent|Approval|Emitter|Exchange\w+|CommsEntry|Fault|FieldError|Json\w*|ModelLife|Owned|Part|ProgressUpdate|Rates|SaidPart|SkipCode|Skip|Tool(?:Call|Output|Result|Surroundings))$/;

/** What programs need that add tools, providers and stores to the product: of these the recipes tell, and not of all that they name. */
const additions =
  /^(?:define\w+|create(?:Memory)Store|chatVendor|ChatVendor|ActionContext|CallParams|Connection|LanguageModel|OptionSpec|(?:Provider|Store|Tool)Definition|ProviderSettings|Store|StoreContext)$/;

/** Types that stand in a signature or a member and are not exported themselves: nobody could write them down. */
async function unexported(
  reader: Reader,
  { name, file, kind, signature, members }: Named,
  exported: ReadonlyMap<string, Declared>,
): Promise<string[]> {
  if (additions.test(name)) return [];
  const own = kind === 'value' ? '' : signature.replace(/ extends .*/s, '');
  const types = members.map(member => `${member.type} ${kind === 'union' ? member.name : ''}`);
  const text = [own, ...types].join(' ').replace(/'[^']*'|\/\*.*?\*\//g, '');
  const missing: string[] = [];
  for (const type of new Set(text.match(/\b[A-Z]\w*/g)))
    if (!exported.has(type) && (await reader.find(file, type)))
      missing.push(`${file}: "${name}" names the type "${type}", which src/index.ts does not export`);
  return missing;
}

/** Only what makes an error does without an example. */
function withoutExample({ name, file, kind }: Named, examples: Examples): string[] {
  if (kind !== 'function' || name.endsWith('Error') || examples(name).length > 0) return [];
  return [`${file}: "${name}" is in no example of docs/library.md`];
}

type Examples = (name: string) => string[];

/** Finds the sections of the guide whose examples use a name, as links. */
function examplesIn(guide: string): Examples {
  const sections = guide.split(/^## /m).slice(1);
  return name =>
    sections
      .filter(text => [...text.matchAll(/^```ts\n(.*?)^```/gms)].some(([, example = '']) => uses(example, name)))
      .map(text => {
        const [title = ''] = text.split('\n', 1);
        return `[${title}](../library.md#${slug(title)})`;
      });
}

function uses(example: string, name: string): boolean {
  return new RegExp(`(?<![\\w.'])${name}\\b`).test(example);
}

function section(one: Named, examples: Examples, linkTo: (name: string) => string): string {
  const { name, signature, doc, links, members, kind } = one;
  const rows = members.map(member => {
    const [source, meaning] = [shown(member.name), cell(member.doc)];
    return kind === 'union' ? [source, meaning] : [source, shown(member.type), meaning];
  });
  const shownIn = kind === 'type' || kind === 'union' ? [] : examples(name);
  return [
    `### ${name}`,
    `\`\`\`ts\n${signature}\n\`\`\``,
    doc,
    ...(shownIn.length > 0 ? [`Example: ${shownIn.join(', ')}.`] : []),
    ...(links.length > 0 ? [`It also has the members of ${links.map(linkTo).join(' and ')}.`] : []),
    ...(rows.length > 0 ? [table(kind === 'union' ? ['one of', 'meaning'] : ['member', 'type', 'meaning'], rows)] : []),
  ].join('\n\n');
}

/** Source in a cell of a table. */
function shown(source: string): string {
  return source === '' ? '' : `\`${source.replaceAll('|', '\\|')}\``;
}
