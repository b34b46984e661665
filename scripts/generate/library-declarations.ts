import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { Node } from 'web-tree-sitter';
import { withTree } from '../../src/workspace/outline/read-outline.ts';

/** One member of an interface, a class, an object or a union; without a docstring, `doc` is empty. */
export interface DeclaredMember {
  name: string;
  type: string;
  doc: string;
}

/** A type whose members another one has too, changed as `Pick` and the like say. */
interface Base {
  name: string;
  isWhole: boolean;
  change(members: DeclaredMember[]): DeclaredMember[];
}

/** What a file declares under a name, as its source says it. */
export interface Declared {
  file: string;
  kind: 'function' | 'value' | 'class' | 'type' | 'union';
  signature: string;
  doc: string;
  /** Names of a function's parameters, and of what it takes out of them. */
  parameters: string[];
  members: DeclaredMember[];
  bases: Base[];
}

/** Names that a file takes from another one, or from a package. */
interface Link {
  from: string;
  name: string;
  doc: string;
}

interface SourceModule {
  declared: Map<string, Declared>;
  links: Map<string, Link>;
  exports: Map<string, Link>;
}

/** Source on one line. */
function oneLine(source: string): string {
  const line = source.replace(/\s+/g, ' ').trim();
  return line.replace(/([(<]) (?:\| )?/g, '$1').replace(/,? (?=\))|(?<=['\w]) (?=>)/g, '');
}

function text(node: Node | null): string {
  return oneLine(node?.text ?? '');
}

function children(node: Node | null): Node[] {
  return (node?.namedChildren ?? []).filter(child => child !== null);
}

/** The docstring that ends where this node begins. */
function docOf(node: Node): string {
  const before = node.previousNamedSibling;
  const isDoc = before?.type === 'comment' && before.text.startsWith('/**');
  return isDoc && before.endPosition.row + 1 >= node.startPosition.row ? docText(before) : '';
}

function docText(comment: Node): string {
  return comment.text
    .replace(/^\/\*\*|\*\/$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
}

/** The type after a colon; a type that takes several lines stands on one here, without its comments. */
function typeText(node: Node | null): string {
  return text(node)
    .replace(/\/\*\*.*?\*\//g, '')
    .replace(/^:\s*/, '');
}

function membersOf(body: Node | null, prefix = ''): DeclaredMember[] {
  return children(body)
    .filter(node => node.type !== 'comment' && !isHidden(node))
    .flatMap(node => {
      const name = `${prefix}${text(node.childForFieldName('name') ?? node.childForFieldName('key') ?? node)}`;
      const optional = node.children.some(child => child?.type === '?') ? '?' : '';
      const member = { name: name + optional, type: memberType(node), doc: docOf(node) };
      const shape = children(node.childForFieldName('type')).find(child => child.type === 'object_type');
      const methods = children(shape ?? null).some(child => child.type === 'method_signature');
      return shape && methods ? [{ ...member, type: 'object' }, ...membersOf(shape, `${name}.`)] : [member];
    });
}

/** What a class keeps to itself: private members, and those under a symbol of its file. */
function isHidden(node: Node): boolean {
  const name = text(node.childForFieldName('name'));
  const isPrivate = children(node).some(child => child.type === 'accessibility_modifier' && child.text !== 'public');
  return isPrivate || name.startsWith('#') || (node.type === 'public_field_definition' && /^\[\w+\]$/.test(name));
}

function memberType(node: Node): string {
  const parameters = node.childForFieldName('parameters');
  if (!parameters) return typeText(node.childForFieldName('type') ?? node.childForFieldName('value'));
  const result = typeText(node.childForFieldName('return_type'));
  return result === '' ? typeText(parameters) : `${typeText(parameters)} => ${result}`;
}

/** The variants of a union with the docstring before each; a union on one line has none. */
function variantsOf(union: Node): DeclaredMember[] {
  if (union.type !== 'union_type' || union.startPosition.row === union.endPosition.row) return [];
  const variants: DeclaredMember[] = [];
  let doc = docOf(union);
  for (const node of flat(union)) {
    if (node.type !== 'comment') variants.push({ name: typeText(node), type: '', doc });
    doc = node.type === 'comment' && node.text.startsWith('/**') ? docText(node) : '';
  }
  return variants;
}

function flat(node: Node): Node[] {
  return node.type === 'union_type' ? children(node).flatMap(flat) : [node];
}

function basesOf(clause: Node | undefined): Base[] {
  return children(clause ?? null).map(baseOf);
}

/** `X`, or `X` in `Pick`, `Omit`, `Partial`, `Required` and `Readonly`, in any nesting. */
function baseOf(node: Node): Base {
  const name = text(node.childForFieldName('name') ?? node);
  const [of, keys] = children(node.childForFieldName('type_arguments'));
  if (!of || !/^(Pick|Omit|Partial|Required|Readonly)$/.test(name))
    return { name, isWhole: true, change: members => members };
  const inner = baseOf(of);
  const named = new Set(text(keys ?? null).match(/[\w$]+/g));
  const changes: Record<string, Base['change']> = {
    Pick: members => members.filter(member => named.has(plainName(member))),
    Omit: members => members.filter(member => !named.has(plainName(member))),
    Partial: members => members.map(member => ({ ...member, name: `${plainName(member)}?` })),
    Required: members => members.map(member => ({ ...member, name: plainName(member) })),
  };
  const change: Base['change'] = members => changes[name]?.(inner.change(members)) ?? inner.change(members);
  return { name: inner.name, isWhole: false, change };
}

export function plainName({ name }: DeclaredMember): string {
  return name.replace(/\?$/, '');
}

/** Names of parameters, and of what is taken out of them. */
function parametersOf(list: Node | null): string[] {
  const names = ['identifier', 'shorthand_property_identifier_pattern'];
  return children(list).flatMap(parameter => {
    const pattern = parameter.childForFieldName('pattern');
    return pattern?.type === 'identifier' ? [pattern.text] : (pattern?.descendantsOfType(names).map(text) ?? []);
  });
}

function declaredBy(file: string, node: Node, doc: string): [string, Declared][] {
  const name = text(node.childForFieldName('name'));
  const body = node.childForFieldName('body');
  const signature = oneLine(node.text.slice(0, body ? body.startIndex - node.startIndex : undefined));
  const plain = { file, doc, signature, parameters: [], bases: [], members: [] };
  switch (node.type) {
    case 'function_declaration':
      return [[name, { ...plain, kind: 'function', parameters: parametersOf(node.childForFieldName('parameters')) }]];
    case 'interface_declaration': {
      const bases = basesOf(children(node).find(({ type }) => type === 'extends_type_clause'));
      return [[name, { ...plain, kind: 'type', bases, members: membersOf(body) }]];
    }
    case 'class_declaration':
      return [[name, { ...plain, kind: 'class', members: membersOf(body) }]];
    case 'type_alias_declaration':
      return [[name, { ...plain, ...aliased(name, node.childForFieldName('value'), signature) }]];
    case 'lexical_declaration':
      return children(node).map(one => [text(one.childForFieldName('name')), { ...plain, ...constant(one) }]);
    default:
      return [];
  }
}

function aliased(
  name: string,
  value: Node | null,
  signature: string,
): Pick<Declared, 'kind' | 'signature' | 'members'> {
  if (value?.type === 'object_type') return { kind: 'type', signature: `type ${name}`, members: membersOf(value) };
  const members = value ? variantsOf(value) : [];
  if (members.length > 0) return { kind: 'union', signature: `type ${name}`, members };
  return { kind: 'type', signature: signature.replace(/;$/, ''), members };
}

function constant(declarator: Node): Pick<Declared, 'kind' | 'signature' | 'members'> & Partial<Declared> {
  const value = declarator.childForFieldName('value');
  if (value?.type === 'arrow_function') {
    const length = (value.childForFieldName('body')?.startIndex ?? value.endIndex) - value.startIndex;
    const head = oneLine(value.text.slice(0, length)).replace(/^async | ?=>$/g, '');
    const parameters = parametersOf(value.childForFieldName('parameters'));
    const name = text(declarator.childForFieldName('name'));
    return { kind: 'function', signature: `function ${name}${head}`, parameters, members: [] };
  }
  if (value?.type !== 'object') return { kind: 'value', signature: `const ${text(declarator)}`, members: [] };
  return {
    kind: 'value',
    signature: `const ${text(declarator.childForFieldName('name'))}: object`,
    members: membersOf(value),
  };
}

function readModule(file: string, root: Node): SourceModule {
  const found: SourceModule = { declared: new Map(), links: new Map(), exports: new Map() };
  for (const node of children(root)) {
    const from = text(node.childForFieldName('source')).slice(1, -1);
    const isExport = node.type === 'export_statement';
    const declaration = isExport ? node.childForFieldName('declaration') : node;
    if (isExport && !declaration && !children(node).some(({ type }) => type === 'export_clause'))
      throw new Error(`${file}: "${text(node)}" does not name what it exports`);
    for (const [name, one] of declaration ? declaredBy(file, declaration, docOf(node)) : []) {
      found.declared.set(name, one);
      if (isExport) found.exports.set(name, { from: '', name, doc: one.doc });
    }
    for (const specifier of node.descendantsOfType(['import_specifier', 'export_specifier'])) {
      if (!specifier) continue;
      const name = text(specifier.childForFieldName('name'));
      const known = text(specifier.childForFieldName('alias')) || name;
      if (isExport) found.exports.set(known, { from, name, doc: docOf(node) });
      if (from) found.links.set(known, { from, name, doc: '' });
    }
  }
  return found;
}

export interface Reader {
  /** What a file exports. What a package declares has the docstring of the statement that passes it on. */
  exported(file: string): Promise<Map<string, Declared>>;
  /** The declaration that a name means in a file; undefined where a package declares it, or the language. */
  find(file: string, name: string): Promise<Declared | undefined>;
  /** Whether a file imports a name from a package, whose own pages tell what it is. */
  isOfPackage(file: string, name: string): Promise<boolean>;
}

/** Follows names from a file to where they are declared. */
export function createReader(root: string): Reader {
  const modules = new Map<string, Promise<SourceModule>>();
  function moduleOf(file: string): Promise<SourceModule> {
    const source = readFileSync(join(root, file), 'utf8');
    const found = modules.get(file) ?? withTree('typescript', source, tree => readModule(file, tree.rootNode));
    modules.set(file, found);
    return found;
  }
  async function find(file: string, name: string): Promise<Declared | undefined> {
    const { declared, links } = await moduleOf(file);
    const link = links.get(name);
    return declared.get(name) ?? (link?.from.startsWith('.') ? find(besides(file, link.from), link.name) : undefined);
  }
  async function exported(file: string): Promise<Map<string, Declared>> {
    const all = new Map<string, Declared>();
    for (const [known, { from, name, doc }] of (await moduleOf(file)).exports) {
      const found = await find(from.startsWith('.') ? besides(file, from) : file, name);
      const signature =
        found?.signature.replace(new RegExp(`\\b${name}\\b`), known) ?? `export { ${name} } from '${from}'`;
      const passedOn: Declared = { file, kind: 'value', signature, doc, parameters: [], members: [], bases: [] };
      all.set(known, { ...passedOn, ...found, signature });
    }
    return all;
  }
  const isOfPackage = async (file: string, name: string) =>
    (await moduleOf(file)).links.get(name)?.from.startsWith('.') === false;
  return { exported, find, isOfPackage };
}

function besides(file: string, path: string): string {
  return posix.join(posix.dirname(file), path);
}
