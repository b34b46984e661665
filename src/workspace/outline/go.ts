import type { Node } from 'web-tree-sitter';
import type { Chain } from './outline.ts';
import {
  block,
  type ChainSyntax,
  called,
  chainOf,
  childrenAt,
  field,
  fieldAt,
  fields,
  heldBy,
  insideAt,
  named,
  namedIn,
  nameOf,
  type Pending,
  type Place,
  pass,
  type Read,
  type Readers,
  readersOf,
  type Sketch,
  stringText,
} from './outline-builder.ts';

const syntax: ChainSyntax = {
  names: new Set(['identifier', 'type_identifier', 'package_identifier', 'field_identifier']),
  members: { selector_expression: ['operand', 'field'], qualified_type: ['package', 'name'] },
  literals: new Set(),
  passable: new Set(['identifier', 'selector_expression']),
  callee: node =>
    node.type === 'call_expression'
      ? field(node, 'function')
      : node.type === 'composite_literal'
        ? plainType(field(node, 'type'))
        : undefined,
  inside: node =>
    node.type === 'parenthesized_expression'
      ? named(node)[0]
      : node.type === 'unary_expression' && /^[&*]/.test(node.text)
        ? field(node, 'operand')
        : undefined,
};

const chain = (node: Node): Chain => chainOf(syntax, node);

/** `T` of `*T`, `T[X]` and `pkg.T`; slices, maps and functions are no single named type. */
function plainType(type: Node | undefined): Node | undefined {
  let node = type;
  while (node?.type === 'pointer_type' || node?.type === 'parenthesized_type') node = named(node)[0];
  if (node?.type === 'generic_type') node = field(node, 'type');
  return node?.type === 'type_identifier' || node?.type === 'qualified_type' ? node : undefined;
}

function typeOf(type: Node | undefined): Chain | undefined {
  const plain = plainType(type);
  return plain && called(chain(plain));
}

/** What a function gives; of several results the first. */
function resultOf(node: Node): Chain | undefined {
  const result = field(node, 'result');
  if (result?.type !== 'parameter_list') return typeOf(result);
  const first = named(result)[0];
  return first && typeOf(field(first, 'type'));
}

function readParameters(sketch: Sketch, list: readonly Node[], scope: number): void {
  for (const parameter of list) {
    const type = parameter.type === 'parameter_declaration' ? typeOf(field(parameter, 'type')) : undefined;
    for (const name of fields(parameter, 'name')) sketch.variable(scope, name.text, type);
  }
}

function enterFunction(sketch: Sketch, node: Node, place: Place, symbol?: number): Pending[] {
  const [declared] = namedIn(node, 'receiver');
  const name = declared && field(declared, 'name')?.text;
  const type = declared && typeOf(field(declared, 'type'));
  const scope = sketch.open(place.scope, 'function', symbol, name && type ? { name, type } : undefined);
  readParameters(sketch, namedIn(node, 'parameters'), scope);
  if (field(node, 'result')?.type === 'parameter_list') readParameters(sketch, namedIn(node, 'result'), scope);
  return insideAt(node, 'body', { scope });
}

const readFunction: Read = (sketch, node, place) => {
  const name = nameOf(node);
  const receiver = field(node, 'receiver');
  const type = receiver && typeOf(field(named(receiver)[0] ?? receiver, 'type'));
  const ownerName = type?.at(-1)?.replace('()', '');
  const kind = receiver ? 'method' : 'function';
  const declared = !field(node, 'body');
  const symbol = sketch.symbol({ node, place, name, kind, ownerName, declared, returns: resultOf(node) });
  return enterFunction(sketch, node, place, symbol);
};

const readType: Read = (sketch, node, place) => {
  const name = nameOf(node);
  const type = field(node, 'type');
  const kind = type?.type === 'struct_type' ? 'class' : type?.type === 'interface_type' ? 'interface' : 'type';
  const symbol = sketch.symbol({ node, place, name, kind });
  const scope = sketch.open(place.scope, 'class', symbol);
  if (kind === 'class' && type) readStruct(sketch, named(type)[0], scope, symbol);
  if (kind === 'interface' && type) readInterface(sketch, type, scope, symbol);
  return [];
};

function readStruct(sketch: Sketch, list: Node | undefined, scope: number, symbol: number): void {
  for (const member of list ? named(list) : []) {
    const type = field(member, 'type');
    const held = typeOf(type);
    const declared = fields(member, 'name');
    for (const name of declared) sketch.variable(scope, name.text, held);
    if (declared.length > 0 || !type || !held) continue;
    sketch.relation(symbol, 'embeds', chain(plainType(type) ?? type), member);
    sketch.variable(scope, (held.at(-1) ?? '?').replace('()', ''), held);
  }
}

function readInterface(sketch: Sketch, type: Node, scope: number, symbol: number): void {
  for (const member of named(type)) {
    const name = field(member, 'name')?.text;
    if (name) {
      const place = { scope, owner: symbol };
      sketch.symbol({ node: member, place, name, kind: 'method', declared: true, returns: resultOf(member) });
    } else if (member.type === 'type_elem' && named(member).length === 1) {
      const embedded = plainType(named(member)[0]);
      if (embedded) sketch.relation(symbol, 'embeds', chain(embedded), member);
    }
  }
}

/** `a := b()`, `a, err := b()`: the first name gets the first result, the others are not known. */
const readDefinition: Read = (sketch, node, place) => {
  const targets = namedIn(node, 'left');
  const values = namedIn(node, 'right');
  const assigned = node.type === 'assignment_statement';
  for (const [index, target] of targets.entries()) {
    if (target.type !== 'identifier' || target.text === '_') continue;
    const value = values.length === targets.length || index === 0 ? values[index] : undefined;
    sketch.variable(place.scope, target.text, heldBy(syntax, value), assigned);
  }
  for (const value of assigned ? values : []) passOn(sketch, value, place);
  return [...(assigned ? insideAt(node, 'left', place) : []), ...insideAt(node, 'right', place)];
};

const readVariable: Read = (sketch, node, place) => {
  const type = typeOf(field(node, 'type'));
  const values = namedIn(node, 'value');
  for (const [index, name] of fields(node, 'name').entries()) {
    sketch.variable(place.scope, name.text, type ?? heldBy(syntax, values[index]));
  }
  return insideAt(node, 'value', place);
};

const readRange: Read = (sketch, node, place) => {
  for (const name of namedIn(node, 'left')) if (name.type === 'identifier') sketch.variable(place.scope, name.text);
  return fieldAt(node, 'right', place);
};

const readCall: Read = (sketch, node, place) => {
  const callee = field(node, 'function');
  if (callee) sketch.call(place.scope, chain(callee), 'calls', node);
  for (const argument of namedIn(node, 'arguments')) passOn(sketch, argument, place);
  return childrenAt(node, place);
};

/** A function that is handed over by its name. */
function passOn(sketch: Sketch, value: Node, place: Place): void {
  pass(syntax, sketch, value.type === 'literal_element' ? named(value)[0] : value, place);
}

const readLiteral: Read = (sketch, node, place) => {
  const type = plainType(field(node, 'type'));
  if (type) sketch.call(place.scope, chain(type), 'constructs', node);
  return insideAt(node, 'body', place);
};

const readKeyed: Read = (sketch, node, place) => {
  const value = field(node, 'value');
  if (value) passOn(sketch, value, place);
  return insideAt(node, 'value', place);
};

const readImport: Read = (sketch, node) => {
  const from = stringText(field(node, 'path'));
  const name = field(node, 'name')?.text;
  // A version at the end of a path is not the package's name.
  const last =
    from
      .replace(/\/v\d+$/, '')
      .split('/')
      .at(-1) ?? from;
  if (name !== '_') sketch.import(node, { local: name === '.' ? '*' : (name ?? last), from, name: '*' });
  return [];
};

const passesChildren: Read = (sketch, node, place) => {
  for (const child of named(node)) {
    for (const value of child.type === 'expression_list' ? named(child) : [child]) passOn(sketch, value, place);
  }
  return childrenAt(node, place);
};

/** How Go is read. */
export const goReaders: Readers = {
  ...readersOf('function_declaration method_declaration', readFunction),
  func_literal: (sketch, node, place) => enterFunction(sketch, node, place),
  ...readersOf('type_spec type_alias', readType),
  ...readersOf('short_var_declaration assignment_statement', readDefinition),
  var_spec: readVariable,
  range_clause: readRange,
  call_expression: readCall,
  composite_literal: readLiteral,
  keyed_element: readKeyed,
  import_spec: readImport,
  return_statement: passesChildren,
  ...readersOf('block if_statement for_statement', block),
  ...readersOf('expression_switch_statement type_switch_statement select_statement', block),
};
