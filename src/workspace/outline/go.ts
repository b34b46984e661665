import type { Node } from 'web-tree-sitter';
import type { Chain } from './outline.ts';
import {
  type ChainSyntax,
  called,
  chainOf,
  childrenAt,
  field,
  fields,
  named,
  type Pending,
  type Place,
  type Sketch,
  stringText,
  walkTree,
} from './outline-builder.ts';

type Read = (sketch: Sketch, node: Node, place: Place) => readonly Pending[];

/** Reads Go. */
export function readGo(sketch: Sketch, root: Node): void {
  walkTree(root, (node, place) => (readers[node.type] ?? readOther)(sketch, node, place));
}

const readOther: Read = (_sketch, node, place) => childrenAt(node, place);

const names = new Set(['identifier', 'type_identifier', 'package_identifier', 'field_identifier']);

const syntax: ChainSyntax = {
  name: node => (names.has(node.type) ? node.text : undefined),
  member(node) {
    if (node.type === 'selector_expression') {
      const [object, name] = [field(node, 'operand'), field(node, 'field')];
      return object && name ? { object, name: name.text } : undefined;
    }
    const [object, name] = [field(node, 'package'), field(node, 'name')];
    return node.type === 'qualified_type' && object && name ? { object, name: name.text } : undefined;
  },
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

function readParameters(sketch: Sketch, list: Node | undefined, scope: number): void {
  for (const parameter of list ? named(list) : []) {
    const type = parameter.type === 'parameter_declaration' ? typeOf(field(parameter, 'type')) : undefined;
    for (const name of fields(parameter, 'name')) sketch.variable(scope, name.text, type);
  }
}

function enterFunction(sketch: Sketch, node: Node, place: Place, symbol?: number): Pending[] {
  const receiver = field(node, 'receiver');
  const declared = receiver && named(receiver)[0];
  const name = declared && field(declared, 'name')?.text;
  const type = declared && typeOf(field(declared, 'type'));
  const scope = sketch.open(place.scope, 'function', symbol, name && type ? { name, type } : undefined);
  readParameters(sketch, field(node, 'parameters'), scope);
  const result = field(node, 'result');
  if (result?.type === 'parameter_list') readParameters(sketch, result, scope);
  const body = field(node, 'body');
  return body ? childrenAt(body, { scope }) : [];
}

const readFunction: Read = (sketch, node, place) => {
  const name = field(node, 'name')?.text ?? '?';
  const receiver = field(node, 'receiver');
  const type = receiver && named(receiver)[0] && typeOf(field(named(receiver)[0] ?? receiver, 'type'));
  const ownerName = type?.at(-1)?.replace('()', '');
  const kind = receiver ? 'method' : 'function';
  const declared = !field(node, 'body');
  const symbol = sketch.symbol({ node, place, name, kind, ownerName, declared, returns: resultOf(node) });
  return enterFunction(sketch, node, place, symbol);
};

const readType: Read = (sketch, node, place) => {
  const name = field(node, 'name')?.text ?? '?';
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
  const left = field(node, 'left');
  const right = field(node, 'right');
  const targets = left ? named(left) : [];
  const values = right ? named(right) : [];
  const assigned = node.type === 'assignment_statement';
  for (const [index, target] of targets.entries()) {
    if (target.type !== 'identifier' || target.text === '_') continue;
    const value = values.length === targets.length || index === 0 ? values[index] : undefined;
    sketch.variable(place.scope, target.text, value && heldBy(value), assigned);
  }
  for (const value of assigned ? values : []) pass(sketch, value, place);
  return [...(assigned && left ? childrenAt(left, place) : []), ...(right ? childrenAt(right, place) : [])];
};

function heldBy(value: Node): Chain | undefined {
  const found = chain(value);
  return found[0] === '?' ? undefined : found;
}

const readVariable: Read = (sketch, node, place) => {
  const type = typeOf(field(node, 'type'));
  const list = field(node, 'value');
  const values = list ? named(list) : [];
  for (const [index, name] of fields(node, 'name').entries()) {
    const value = values[index];
    sketch.variable(place.scope, name.text, type ?? (value && heldBy(value)));
  }
  return list ? childrenAt(list, place) : [];
};

const readRange: Read = (sketch, node, place) => {
  const left = field(node, 'left');
  for (const name of left ? named(left) : []) if (name.type === 'identifier') sketch.variable(place.scope, name.text);
  const right = field(node, 'right');
  return right ? [[right, place]] : [];
};

const readCall: Read = (sketch, node, place) => {
  const callee = field(node, 'function');
  const list = field(node, 'arguments');
  if (callee) sketch.call(place.scope, chain(callee), 'calls', node);
  for (const argument of list ? named(list) : []) pass(sketch, argument, place);
  return childrenAt(node, place);
};

/** A function that is handed over by its name. */
function pass(sketch: Sketch, value: Node, { scope }: Place): void {
  const target = value.type === 'literal_element' ? named(value)[0] : value;
  if (target?.type === 'identifier' || target?.type === 'selector_expression') {
    const found = chain(target);
    if (found[0] !== '?') sketch.call(scope, found, 'passes', value);
  }
}

const readLiteral: Read = (sketch, node, place) => {
  const type = plainType(field(node, 'type'));
  if (type) sketch.call(place.scope, chain(type), 'constructs', node);
  const body = field(node, 'body');
  return body ? childrenAt(body, place) : [];
};

const readKeyed: Read = (sketch, node, place) => {
  const value = field(node, 'value');
  if (value) pass(sketch, value, place);
  return value ? childrenAt(value, place) : [];
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

const block: Read = (sketch, node, place) => childrenAt(node, { scope: sketch.open(place.scope, 'block') });

const passesChildren: Read = (sketch, node, place) => {
  for (const child of named(node)) {
    for (const value of child.type === 'expression_list' ? named(child) : [child]) pass(sketch, value, place);
  }
  return childrenAt(node, place);
};

const readers: Readonly<Record<string, Read>> = {
  function_declaration: readFunction,
  method_declaration: readFunction,
  func_literal: (sketch, node, place) => enterFunction(sketch, node, place),
  type_spec: readType,
  type_alias: readType,
  short_var_declaration: readDefinition,
  assignment_statement: readDefinition,
  var_spec: readVariable,
  range_clause: readRange,
  call_expression: readCall,
  composite_literal: readLiteral,
  keyed_element: readKeyed,
  import_spec: readImport,
  return_statement: passesChildren,
  block,
  if_statement: block,
  for_statement: block,
  expression_switch_statement: block,
  type_switch_statement: block,
  select_statement: block,
};
