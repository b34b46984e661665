import type { Node } from 'web-tree-sitter';
import type { SymbolKind } from './outline.ts';
import {
  block,
  called,
  childrenAt,
  field,
  fieldAt,
  fields,
  heldBy,
  membersAround,
  named,
  namedIn,
  nameOf,
  nothing,
  type Pending,
  type Place,
  pass,
  passesChildren,
  type Read,
  type Readers,
  type Sketch,
} from './outline-builder.ts';
import {
  boundNames,
  readExport,
  readExportedAssignment,
  readImport,
  readRequire,
  requiredModule,
  typescriptChain,
  typescriptSyntax,
  typescriptType,
} from './typescript-syntax.ts';

const functionValues = new Set(['arrow_function', 'function_expression', 'generator_function']);

/** The receiver in a function: arrows have that of what is around them. */
function selfOf(sketch: Sketch, owner: number | undefined) {
  const name = owner === undefined ? undefined : sketch.outline.symbols[owner]?.name;
  return name ? { name: 'this', type: called([name]) } : undefined;
}

/** Opens a function's scope with its parameters; answers what is inside. */
function enterFunction(sketch: Sketch, node: Node, place: Place, symbol?: number): Pending[] {
  const self = node.type === 'arrow_function' ? undefined : selfOf(sketch, place.owner);
  const scope = sketch.open(place.scope, 'function', symbol, self);
  const single = field(node, 'parameter');
  if (single) sketch.variable(scope, single.text);
  for (const parameter of namedIn(node, 'parameters')) readParameter(sketch, parameter, scope, place);
  const inner = { scope };
  const body = field(node, 'body');
  const rest = named(node).filter(child => !sameNode(child, body));
  const inside: Pending[] = body ? (body.type === 'statement_block' ? childrenAt(body, inner) : [[body, inner]]) : [];
  return [...rest.filter(child => child.type !== 'identifier').map((child): Pending => [child, inner]), ...inside];
}

function sameNode(a: Node, b: Node | undefined): boolean {
  return a.id === b?.id;
}

function readParameter(sketch: Sketch, parameter: Node, scope: number, { owner }: Place): void {
  const pattern = field(parameter, 'pattern') ?? parameter;
  const type = typescriptType(field(parameter, 'type'));
  const names = boundNames(pattern);
  for (const name of names) sketch.variable(scope, name, pattern.type === 'identifier' ? type : undefined);
  const isField = named(parameter).some(child => child.type === 'accessibility_modifier');
  const body = owner === undefined ? undefined : sketch.outline.symbols[owner]?.body;
  if (body !== undefined && (isField || parameter.children.some(child => child?.type === 'readonly'))) {
    for (const name of names) sketch.variable(body, name, type);
  }
}

function declareFunction(kind: SymbolKind, declared = false): Read {
  return (sketch, node, place) => {
    const name = nameOf(node, 'default');
    const returns = typescriptType(field(node, 'return_type'));
    const isMember = kind === 'method' && place.owner === undefined;
    const symbol = isMember ? undefined : sketch.symbol({ node, place, name, kind, declared, returns });
    return enterFunction(sketch, node, place, symbol);
  };
}

function declareType(kind: SymbolKind): Read {
  return (sketch, node, place) => {
    const name = nameOf(node, 'default');
    return enterType(sketch, node, place, sketch.symbol({ node, place: { scope: place.scope }, name, kind }));
  };
}

function enterType(sketch: Sketch, node: Node, place: Place, symbol: number): Pending[] {
  const scope = sketch.open(place.scope, 'class', symbol);
  for (const part of named(node)) {
    if (part.type === 'extends_type_clause') relate(sketch, symbol, 'extends', fields(part, 'type'));
    if (part.type !== 'class_heritage') continue;
    for (const clause of named(part)) {
      if (clause.type === 'implements_clause') relate(sketch, symbol, 'implements', named(clause));
      else relate(sketch, symbol, 'extends', [field(clause, 'value') ?? clause]);
    }
  }
  const members = { scope, owner: symbol };
  const value = field(node, 'value');
  const body = field(node, 'body') ?? (value?.type === 'object_type' ? value : undefined);
  const outer = named(node).filter(child => !sameNode(child, body) && child.type !== 'class_heritage');
  return [...outer.flatMap(child => childrenAt(child, place)), ...(body ? childrenAt(body, members) : [])];
}

function relate(sketch: Sketch, symbol: number, kind: 'extends' | 'implements', types: readonly Node[]): void {
  for (const type of types) {
    const target = type.type === 'generic_type' ? (field(type, 'name') ?? type) : type;
    sketch.relation(symbol, kind, typescriptChain(target), type);
  }
}

/** A value that has a name: functions, classes and objects with functions become symbols of that name. */
function readNamedValue(
  sketch: Sketch,
  { node, name, value }: { node: Node; name: string; value: Node },
  place: Place,
): Pending[] | undefined {
  const kind: SymbolKind = place.owner === undefined ? 'function' : 'method';
  if (functionValues.has(value.type)) {
    const returns = typescriptType(field(value, 'return_type'));
    return enterFunction(sketch, value, place, sketch.symbol({ node, place, name, kind, returns }));
  }
  if (value.type === 'class')
    return enterType(sketch, value, place, sketch.symbol({ node, place, name, kind: 'class' }));
  if (value.type !== 'object' || !named(value).some(holdsFunction)) return undefined;
  const symbol = sketch.symbol({ node, place, name, kind: 'object' });
  const scope = sketch.open(place.scope, 'class', symbol);
  return childrenAt(value, { scope, owner: symbol });
}

function holdsFunction(part: Node): boolean {
  return part.type === 'method_definition' || functionValues.has(field(part, 'value')?.type ?? '');
}

const readDeclarator: Read = (sketch, node, place) => {
  const pattern = field(node, 'name');
  const value = field(node, 'value');
  const required = requiredModule(value);
  if (required !== undefined) {
    readRequire(sketch, node, required);
    return [];
  }
  if (pattern?.type !== 'identifier') {
    for (const name of boundNames(pattern)) sketch.variable(place.scope, name);
    return childrenAt(node, place);
  }
  const inside = value && readNamedValue(sketch, { node, name: pattern.text, value }, place);
  if (inside) return inside;
  sketch.variable(place.scope, pattern.text, typescriptType(field(node, 'type')) ?? heldBy(typescriptSyntax, value));
  return fieldAt(node, 'value', place);
};

const readField: Read = (sketch, node, place) => {
  const name = (field(node, 'name') ?? field(node, 'property') ?? field(node, 'key'))?.text ?? '?';
  const value = field(node, 'value');
  // Arrows in fields and objects see the class's `this`.
  const inside = value && readNamedValue(sketch, { node, name, value }, place);
  const self = selfOf(sketch, place.owner);
  if (inside) return value?.type === 'arrow_function' ? withSelf(sketch, inside, self) : inside;
  sketch.variable(place.scope, name, typescriptType(field(node, 'type')) ?? heldBy(typescriptSyntax, value));
  return value ? [[value, { scope: sketch.open(place.scope, 'function', undefined, self) }]] : [];
};

function withSelf(sketch: Sketch, inside: Pending[], self: ReturnType<typeof selfOf>): Pending[] {
  const [, place] = inside[0] ?? [];
  const scope = place && sketch.outline.scopes[place.scope];
  if (scope) scope.self = self;
  return inside;
}

const readPair: Read = (sketch, node, place) => {
  if (place.owner !== undefined) return readField(sketch, node, place);
  pass(typescriptSyntax, sketch, field(node, 'value'), place);
  return fieldAt(node, 'value', place);
};

const readCall: Read = (sketch, node, place) => {
  const callee = field(node, 'function') ?? field(node, 'constructor');
  const list = field(node, 'arguments');
  if (!callee) return childrenAt(node, place);
  const construction = node.type === 'new_expression' || callee.type === 'super';
  if (callee.type !== 'import') {
    sketch.call(place.scope, typescriptChain(callee), construction ? 'constructs' : 'calls', node);
  }
  for (const argument of list?.type === 'arguments' ? named(list) : []) pass(typescriptSyntax, sketch, argument, place);
  return [[callee, place], ...(list ? childrenAt(list, place) : [])];
};

const readElement: Read = (sketch, node, place) => {
  const name = field(node, 'name');
  // Lower-case names are the platform's own elements.
  if (name && /^[A-Z]|\./.test(name.text)) sketch.call(place.scope, typescriptChain(name), 'renders', node);
  return named(node)
    .filter(child => !sameNode(child, name))
    .map(child => [child, place]);
};

const passesEach = passesChildren(typescriptSyntax);

const readAssignment: Read = (sketch, node, place) => {
  const left = field(node, 'left');
  const right = field(node, 'right');
  if (!left || !right) return childrenAt(node, place);
  const name = readExportedAssignment(sketch, left, right);
  const inside = name ? readNamedValue(sketch, { node, name, value: right }, { scope: place.scope }) : undefined;
  if (inside) return inside;
  const property = /^this\.([\w$#]+)$/.exec(left.text)?.[1];
  const members = property === undefined ? undefined : membersAround(sketch, place.scope);
  // What a variable is set to later contradicts what it was first, unless both say the same.
  if (left.type === 'identifier') sketch.variable(place.scope, left.text, heldBy(typescriptSyntax, right), true);
  else if (property !== undefined && members !== undefined)
    sketch.variable(members, property, heldBy(typescriptSyntax, right));
  else pass(typescriptSyntax, sketch, right, place);
  return [
    [left, place],
    [right, place],
  ];
};

/** A block of which one field binds names. */
const binding =
  (pattern: string): Read =>
  (sketch, node, place) => {
    const scope = sketch.open(place.scope, 'block');
    for (const name of boundNames(field(node, pattern))) sketch.variable(scope, name);
    return childrenAt(node, { scope });
  };

const readFunctionValue: Read = (sketch, node, place) => enterFunction(sketch, node, { scope: place.scope });

/** How TypeScript, TSX and JavaScript are read. */
export const typescriptReaders: Readers = {
  import_statement: (sketch, node) => {
    readImport(sketch, node);
    return [];
  },
  export_statement: (sketch, node, place) => {
    readExport(sketch, node);
    const value = field(node, 'value');
    const inside = value && readNamedValue(sketch, { node, name: 'default', value }, place);
    return inside ?? childrenAt(node, place);
  },
  function_declaration: declareFunction('function'),
  generator_function_declaration: declareFunction('function'),
  function_signature: declareFunction('function', true),
  method_definition: declareFunction('method'),
  method_signature: declareFunction('method', true),
  abstract_method_signature: declareFunction('method', true),
  arrow_function: readFunctionValue,
  function_expression: readFunctionValue,
  generator_function: readFunctionValue,
  class_declaration: declareType('class'),
  abstract_class_declaration: declareType('class'),
  interface_declaration: declareType('interface'),
  type_alias_declaration: declareType('type'),
  enum_declaration: declareType('type'),
  variable_declarator: readDeclarator,
  public_field_definition: readField,
  field_definition: readField,
  property_signature: readField,
  pair: readPair,
  object: passesEach,
  array: passesEach,
  arguments: (_sketch, node, place) => childrenAt(node, place),
  jsx_expression: passesEach,
  return_statement: passesEach,
  decorator: passesEach,
  call_expression: readCall,
  new_expression: readCall,
  jsx_opening_element: readElement,
  jsx_self_closing_element: readElement,
  jsx_closing_element: nothing,
  assignment_expression: readAssignment,
  statement_block: block,
  for_statement: block,
  for_in_statement: binding('left'),
  catch_clause: binding('parameter'),
  // The members of types that have no name can't be named either.
  object_type: nothing,
  function_type: nothing,
  type_annotation: nothing,
  type_arguments: nothing,
  type_parameters: nothing,
};
