import { basename } from 'node:path/posix';
import type { Node } from 'web-tree-sitter';
import type { Chain } from './outline.ts';
import type { ChainSyntax, Pending, Place, Readers, Writer } from './outline-builder.ts';
import * as tree from './outline-builder.ts';

const syntax: ChainSyntax = {
  names: new Set(['identifier', 'type_identifier', 'package_identifier', 'field_identifier']),
  members: { selector_expression: ['operand', 'field'], qualified_type: ['package', 'name'] },
  literals: new Set(),
  passable: new Set(['identifier', 'selector_expression']),
  callees: { call_expression: 'function', composite_literal: 'type' },
  inside: node => {
    if (node.type === 'parenthesized_expression') return tree.named(node)[0];
    if (node.type === 'generic_type') return tree.field(node, 'type');
    // `New[string]()` is parsed like `list[at]()`.
    if (node.type === 'index_expression' && node.parent?.type === 'call_expression') return tree.field(node, 'operand');
    return node.type === 'unary_expression' && /^[&*]/.test(node.text) ? tree.field(node, 'operand') : undefined;
  },
};

const chain = (node: Node): Chain => tree.chainOf(syntax, node);

/** `T` of `*T`, `T[X]` and `pkg.T`; slices, maps and functions are no single named type. */
function plainType(type: Node | undefined): Node | undefined {
  let node = type;
  while (node?.type === 'pointer_type' || node?.type === 'parenthesized_type') node = tree.named(node)[0];
  if (node?.type === 'generic_type') node = tree.field(node, 'type');
  return node?.type === 'type_identifier' || node?.type === 'qualified_type' ? node : undefined;
}

function typeOf(type: Node | undefined): Chain | undefined {
  const plain = plainType(type);
  return plain && tree.called(chain(plain));
}

/** What a function gives; of several results the first. */
function resultOf(node: Node): Chain | undefined {
  const result = tree.field(node, 'result');
  if (result?.type !== 'parameter_list') return typeOf(result);
  const first = tree.named(result)[0];
  return first && typeOf(tree.field(first, 'type'));
}

function readParameters(writer: Writer, list: readonly Node[], scope: number): void {
  for (const parameter of list) {
    const type = parameter.type === 'parameter_declaration' ? typeOf(tree.field(parameter, 'type')) : undefined;
    for (const name of tree.fields(parameter, 'name')) writer.variable(scope, name.text, type, 'typed');
  }
}

function enterFunction(writer: Writer, node: Node, place: Place, symbol?: number): Pending[] {
  const [declared] = tree.namedIn(node, 'receiver');
  const name = declared && tree.field(declared, 'name')?.text;
  const type = declared && typeOf(tree.field(declared, 'type'));
  const scope = writer.open(place.scope, 'function', symbol, name && type ? { name, type } : undefined);
  readParameters(writer, tree.namedIn(node, 'parameters'), scope);
  if (tree.field(node, 'result')?.type === 'parameter_list')
    readParameters(writer, tree.namedIn(node, 'result'), scope);
  return tree.insideAt(node, 'body', { scope });
}

function readStruct(writer: Writer, list: Node | undefined, scope: number, symbol: number): void {
  for (const member of list ? tree.named(list) : []) {
    const type = tree.field(member, 'type');
    const held = typeOf(type);
    const declared = tree.fields(member, 'name');
    for (const name of declared) writer.variable(scope, name.text, held, 'typed');
    if (declared.length > 0 || !type || !held) continue;
    writer.relation(symbol, 'embeds', chain(plainType(type) ?? type), member);
    writer.variable(scope, (held.at(-1) ?? '?').replace('()', ''), held);
  }
}

function readInterface(writer: Writer, type: Node, scope: number, symbol: number): void {
  for (const member of tree.named(type)) {
    const name = tree.field(member, 'name')?.text;
    if (name) {
      const place = { scope, owner: symbol };
      writer.symbol({ node: member, place, name, kind: 'method', declared: true, returns: resultOf(member) });
    } else if (member.type === 'type_elem' && tree.named(member).length === 1) {
      const embedded = plainType(tree.named(member)[0]);
      if (embedded) writer.relation(symbol, 'embeds', chain(embedded), member);
    }
  }
}

/** Names that get who knows what. */
function bindAll(writer: Writer, node: Node, field: string, scope: number): void {
  const names = tree.namedIn(node, field).filter(({ type }) => type === 'identifier');
  for (const name of names) writer.variable(scope, name.text);
}

/** How Go is read. */
export const goReaders: Readers = {
  ...tree.readersOf('function_declaration method_declaration', (writer, node, place) => {
    const name = tree.nameOf(node);
    const receiver = tree.field(node, 'receiver');
    const type = receiver && typeOf(tree.field(tree.named(receiver)[0] ?? receiver, 'type'));
    const ownerName = type?.at(-1)?.replace('()', '');
    const kind = receiver ? 'method' : 'function';
    const declared = !tree.field(node, 'body');
    const symbol = writer.symbol({ node, place, name, kind, ownerName, declared, returns: resultOf(node) });
    return enterFunction(writer, node, place, symbol);
  }),
  func_literal: (writer, node, place) => enterFunction(writer, node, place),
  ...tree.readersOf('type_spec type_alias', (writer, node, place) => {
    const name = tree.nameOf(node);
    const type = tree.field(node, 'type');
    const kind = type?.type === 'struct_type' ? 'class' : type?.type === 'interface_type' ? 'interface' : 'type';
    const symbol = writer.symbol({ node, place, name, kind });
    const scope = writer.open(place.scope, 'class', symbol);
    if (kind === 'class' && type) readStruct(writer, tree.named(type)[0], scope, symbol);
    if (kind === 'interface' && type) readInterface(writer, type, scope, symbol);
    return [];
  }),
  /** `a := b()`, `a, err := b()`: the first name gets the first result, the others are not known. */
  ...tree.readersOf('short_var_declaration assignment_statement', (writer, node, place) => {
    const targets = tree.namedIn(node, 'left');
    const values = tree.namedIn(node, 'right');
    const assigned = node.type === 'assignment_statement';
    const how = assigned ? 'assigned' : 'typed';
    for (const [index, target] of targets.entries()) {
      if (target.type !== 'identifier' || target.text === '_') continue;
      const value = values.length === targets.length || index === 0 ? values[index] : undefined;
      writer.variable(place.scope, target.text, tree.heldBy(syntax, value), how);
    }
    for (const value of assigned ? values : []) tree.passes(syntax, writer, value, place);
    return [...(assigned ? tree.insideAt(node, 'left', place) : []), ...tree.insideAt(node, 'right', place)];
  }),
  var_spec: (writer, node, place) => {
    const type = typeOf(tree.field(node, 'type'));
    const values = tree.namedIn(node, 'value');
    for (const [index, name] of tree.fields(node, 'name').entries()) {
      writer.variable(place.scope, name.text, type ?? tree.heldBy(syntax, values[index]), 'typed');
    }
    return tree.insideAt(node, 'value', place);
  },
  ...tree.readersOf('range_clause receive_statement', (writer, node, place) => {
    bindAll(writer, node, 'left', place.scope);
    return tree.fieldAt(node, 'right', place);
  }),
  call_expression: tree.callReader(syntax, () => 'calls'),
  composite_literal: (writer, node, place) => {
    const type = plainType(tree.field(node, 'type'));
    if (type) writer.call(place.scope, chain(type), 'constructs', node);
    return tree.insideAt(node, 'body', place);
  },
  keyed_element: tree.pairReader(syntax),
  import_spec: (writer, node) => {
    const from = tree.stringText(tree.field(node, 'path'));
    const name = tree.field(node, 'name')?.text;
    // A version at the end of a path is not the package's name, nor is what says that it is Go.
    const last = basename(from.replace(/[/.]v\d+$/, '')).replace(/^go-|[-.]go$/g, '');
    const local = name === '.' ? '*' : (name ?? last);
    if (name !== '_') writer.import(node, { local, from, name: '*', guessed: name === undefined });
    return [];
  },
  package_clause: ({ outline }, node) => {
    outline.packageName = tree.named(node)[0]?.text;
    return [];
  },
  return_statement: (writer, node, place) =>
    tree.named(node).flatMap(list => tree.passesChildren(syntax)(writer, list, place)),
  ...tree.readersOf('block if_statement for_statement', tree.block),
  ...tree.readersOf('expression_switch_statement select_statement', tree.block),
  type_switch_statement: (writer, node, place) => {
    const scope = writer.open(place.scope, 'block');
    bindAll(writer, node, 'alias', scope);
    return tree.childrenAt(node, { scope });
  },
};
