import type { Node } from 'web-tree-sitter';
import { type Chain, type SymbolKind, scopesAround } from './outline.ts';
import type { ChainSyntax, Pending, Place, Read, Readers, Writer } from './outline-builder.ts';
import * as tree from './outline-builder.ts';

const transparent = new Set(
  'parenthesized_expression non_null_expression await_expression as_expression satisfies_expression'.split(' '),
);

const syntax: ChainSyntax = {
  names: new Set('identifier this super type_identifier shorthand_property_identifier property_identifier'.split(' ')),
  members: {
    member_expression: ['object', 'property'],
    nested_type_identifier: ['module', 'name'],
    nested_identifier: ['object', 'property'],
  },
  literals: new Set(['array', 'object', 'string', 'template_string', 'number', 'regex', 'true', 'false']),
  passable: new Set(['identifier', 'member_expression', 'shorthand_property_identifier']),
  callees: { call_expression: 'function', new_expression: 'constructor' },
  inside: node => (transparent.has(node.type) ? tree.named(node)[0] : undefined),
};

const chain = (node: Node): Chain => tree.chainOf(syntax, node);

/** A type as a chain whose last part is called; undefined for what is no single named type. */
function typeOf(annotation: Node | undefined): Chain | undefined {
  let type = annotation?.type === 'type_annotation' ? tree.named(annotation)[0] : annotation;
  if (type?.type === 'union_type') {
    const parts = tree.named(type).filter(part => !/^(undefined|null)$/.test(part.text));
    type = parts.length === 1 ? parts[0] : undefined;
  }
  if (type?.type === 'generic_type') {
    const name = tree.field(type, 'name');
    // What was promised is what `await` gives.
    if (name?.text === 'Promise') return typeOf(tree.named(tree.field(type, 'type_arguments') ?? type)[0]);
    type = name;
  }
  if (type?.type === 'array_type' || type?.type === 'tuple_type' || type?.type === 'predefined_type')
    return tree.builtIn;
  if (type?.type !== 'type_identifier' && type?.type !== 'nested_type_identifier') return undefined;
  return tree.called(chain(type));
}

const bindings = new Set(['identifier', 'shorthand_property_identifier_pattern']);

/** All names that a pattern binds. */
function boundNames(pattern: Node | undefined): string[] {
  if (!pattern) return [];
  const bound: string[] = [];
  const waiting = [pattern];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (bindings.has(node.type)) bound.push(node.text);
    else if (node.type === 'pair_pattern') waiting.push(...tree.fields(node, 'value'));
    else if (node.type === 'assignment_pattern' || node.type === 'object_assignment_pattern') {
      waiting.push(...tree.fields(node, 'left'));
    } else if (/_pattern$/.test(node.type)) waiting.push(...tree.named(node));
  }
  return bound;
}

/** `import a, { b as c } from 'd'`, `import * as e from 'd'`. */
const readImport: Read = (writer, statement) => {
  const from = tree.stringText(tree.field(statement, 'source'));
  const clause = tree.named(statement).find(child => child.type === 'import_clause');
  for (const part of clause && from !== '' ? tree.named(clause) : []) {
    if (part.type === 'identifier') writer.import(statement, { local: part.text, from, name: 'default' });
    if (part.type === 'namespace_import')
      writer.import(statement, { local: tree.named(part)[0]?.text ?? '*', from, name: '*' });
    if (part.type !== 'named_imports') continue;
    for (const specifier of tree.named(part)) {
      const name = tree.field(specifier, 'name')?.text;
      if (name) writer.import(specifier, { local: tree.field(specifier, 'alias')?.text ?? name, from, name });
    }
  }
  return [];
};

/** What an export statement says besides its declaration, which is visited like any other. */
function readExport({ outline }: Writer, statement: Node): void {
  const line = tree.lineOf(statement);
  const source = tree.field(statement, 'source');
  const from = source && tree.stringText(source);
  const declaration = tree.field(statement, 'declaration');
  const isDefault = statement.children.some(child => child?.type === 'default');
  for (const name of declaredNames(declaration)) outline.exports.push({ as: isDefault ? 'default' : name, name, line });
  const value = tree.field(statement, 'value');
  const named = value && (wrappedIn('default', value) ?? value);
  if (isDefault && named?.type === 'identifier') outline.exports.push({ as: 'default', name: named.text, line });
  // A default export without a name of its own is called what it is.
  if (isDefault && (value ?? declaration) && outline.exports.at(-1)?.as !== 'default')
    outline.exports.push({ as: 'default', name: 'default', line });
  const clause = tree.named(statement).find(child => child.type === 'export_clause');
  const namespace = tree.named(statement).find(child => child.type === 'namespace_export');
  for (const specifier of clause ? tree.named(clause) : []) {
    const name = tree.field(specifier, 'name')?.text;
    if (name) outline.exports.push({ as: tree.field(specifier, 'alias')?.text ?? name, name, from, line });
  }
  if (from === undefined || clause) return;
  outline.exports.push({ as: namespace ? (tree.named(namespace)[0]?.text ?? '*') : '*', name: '*', from, line });
}

function declaredNames(declaration: Node | undefined): string[] {
  if (!declaration) return [];
  const own = tree.field(declaration, 'name')?.text;
  return own ? [own] : tree.named(declaration).flatMap(child => tree.field(child, 'name')?.text ?? []);
}

/** The module of `require('x')`. */
function requiredModule(value: Node | undefined): string | undefined {
  if (value?.type !== 'call_expression' || tree.field(value, 'function')?.text !== 'require') return undefined;
  const first = tree.named(tree.field(value, 'arguments') ?? value)[0];
  return first?.type === 'string' ? tree.stringText(first) : undefined;
}

/** `const a = require('x')`, `const { b, c: d } = require('x')`. */
function readRequire(writer: Writer, declarator: Node, from: string): void {
  const pattern = tree.field(declarator, 'name');
  if (pattern?.type === 'identifier') writer.import(declarator, { local: pattern.text, from, name: '*' });
  for (const part of pattern?.type === 'object_pattern' ? tree.named(pattern) : []) {
    const local = part.type === 'pair_pattern' ? tree.field(part, 'value')?.text : part.text;
    const name = part.type === 'pair_pattern' ? tree.field(part, 'key')?.text : part.text;
    if (local && name) writer.import(part, { local, from, name });
  }
}

/** `exports.a = b`, `module.exports = c`, `module.exports = { d, e: f }`. A function or class there is named by its place. */
function readExportedAssignment({ outline }: Writer, left: Node, right: Node): string | undefined {
  const target = left.text;
  const line = tree.lineOf(left);
  const single = /^(?:module\.)?exports\.([\w$]+)$/.exec(target)?.[1];
  if (single) {
    outline.exports.push({ as: single, name: right.type === 'identifier' ? right.text : single, line });
    return single;
  }
  if (target !== 'module.exports') return undefined;
  if (right.type === 'identifier') outline.exports.push({ as: 'default', name: right.text, line });
  for (const part of right.type === 'object' ? tree.named(right) : []) {
    const key = part.type === 'pair' ? tree.field(part, 'key')?.text : part.text;
    const value = part.type === 'pair' ? tree.field(part, 'value') : part;
    if (key && value && /identifier/.test(value.type)) outline.exports.push({ as: key, name: value.text, line });
  }
  return 'default';
}

const readCall = tree.callReader(syntax, (node, callee) =>
  node.type === 'new_expression' || callee.type === 'super' ? 'constructs' : 'calls',
);

const functionValues = new Set(['arrow_function', 'function_expression', 'generator_function']);

/** The receiver in a function: arrows have that of what is around them. */
function selfOf(writer: Writer, owner: number | undefined) {
  const name = owner === undefined ? undefined : writer.outline.symbols[owner]?.name;
  return name ? { name: 'this', type: tree.called([name]) } : undefined;
}

/** Opens a function's scope with its parameters; answers what is inside. */
function enterFunction(writer: Writer, node: Node, place: Place, symbol?: number): Pending[] {
  const self = node.type === 'arrow_function' ? undefined : selfOf(writer, place.owner);
  const scope = writer.open(place.scope, 'function', symbol, self);
  const single = tree.field(node, 'parameter');
  if (single) writer.variable(scope, single.text);
  for (const parameter of tree.namedIn(node, 'parameters')) readParameter(writer, parameter, scope, place);
  const inner = { scope };
  const body = tree.field(node, 'body');
  const rest = tree.childrenAt(node, inner).filter(([child]) => child.id !== body?.id && child.type !== 'identifier');
  const isBlock = body?.type === 'statement_block';
  return [...rest, ...(isBlock ? tree.childrenAt(body, inner) : tree.fieldAt(node, 'body', inner))];
}

function readParameter(writer: Writer, parameter: Node, scope: number, { owner }: Place): void {
  const pattern = tree.field(parameter, 'pattern') ?? parameter;
  const type = typeOf(tree.field(parameter, 'type'));
  const names = boundNames(pattern);
  for (const name of names) writer.variable(scope, name, pattern.type === 'identifier' ? type : undefined, 'typed');
  const isField = tree.named(parameter).some(child => child.type === 'accessibility_modifier');
  const body = owner === undefined ? undefined : writer.outline.symbols[owner]?.body;
  if (body !== undefined && (isField || parameter.children.some(child => child?.type === 'readonly'))) {
    for (const name of names) writer.variable(body, name, type, 'typed');
  }
}

function declareFunction(kind: SymbolKind, declared = false): Read {
  return (writer, node, place) => {
    const name = tree.nameOf(node, 'default');
    const returns = typeOf(tree.field(node, 'return_type'));
    const isMember = kind === 'method' && place.owner === undefined;
    const symbol = isMember ? undefined : writer.symbol({ node, place, name, kind, declared, returns });
    return enterFunction(writer, node, place, symbol);
  };
}

function declareType(kind: SymbolKind): Read {
  return (writer, node, place) => {
    const name = tree.nameOf(node, 'default');
    return enterType(writer, node, place, writer.symbol({ node, place, name, kind }));
  };
}

function enterType(writer: Writer, node: Node, place: Place, symbol: number): Pending[] {
  const scope = writer.open(place.scope, 'class', symbol);
  for (const part of tree.named(node)) {
    if (part.type === 'extends_type_clause') relate(writer, symbol, 'extends', tree.fields(part, 'type'));
    if (part.type !== 'class_heritage') continue;
    for (const clause of tree.named(part)) {
      if (clause.type === 'implements_clause') relate(writer, symbol, 'implements', tree.named(clause));
      else relate(writer, symbol, 'extends', [tree.field(clause, 'value') ?? clause]);
    }
  }
  const members = { scope, owner: symbol };
  const value = tree.field(node, 'value');
  const body = tree.field(node, 'body') ?? (value?.type === 'object_type' ? value : undefined);
  const outer = tree.named(node).filter(child => child.id !== body?.id && child.type !== 'class_heritage');
  return [...outer.flatMap(child => tree.childrenAt(child, place)), ...(body ? tree.childrenAt(body, members) : [])];
}

function relate(writer: Writer, symbol: number, kind: 'extends' | 'implements', types: readonly Node[]): void {
  for (const type of types) {
    const target = type.type === 'generic_type' ? (tree.field(type, 'name') ?? type) : type;
    writer.relation(symbol, kind, chain(target), type);
  }
}

/** What a component is made from: `memo(forwardRef(function () {}))`, `connect(state)(Page)`. */
function wrappedIn(name: string, value: Node): Node | undefined {
  let node: Node | undefined = value;
  while (node?.type === 'call_expression') node = tree.namedIn(node, 'arguments')[0];
  return node !== value && /^(?:[A-Z]|default$)/.test(name) ? node : undefined;
}

/** A value that has a name: functions, classes and objects with functions become symbols of that name. */
function readNamedValue(writer: Writer, named: { node: Node; name: string; value: Node }, place: Place) {
  const { node, name, value } = named;
  const isFree = node.type === 'variable_declarator' || place.owner === undefined;
  const kind: SymbolKind = isFree ? 'function' : 'method';
  if (functionValues.has(value.type)) {
    const returns = typeOf(tree.field(value, 'return_type'));
    return enterFunction(writer, value, place, writer.symbol({ node, place, name, kind, returns }));
  }
  const wrapped = wrappedIn(name, value);
  if (wrapped && functionValues.has(wrapped.type)) {
    // What wraps it is called here.
    const parts = readCall(writer, value, place).map(([part]) => part);
    const outer = parts.flatMap(part => (part.type === 'arguments' ? tree.named(part).slice(1) : part));
    const inner = enterFunction(writer, wrapped, place, writer.symbol({ node, place, name, kind }));
    return [...outer.map((part): Pending => [part, { scope: place.scope }]), ...inner];
  }
  if (value.type === 'class')
    return enterType(writer, value, place, writer.symbol({ node, place, name, kind: 'class' }));
  if (value.type !== 'object' || !tree.named(value).some(holdsFunction)) return undefined;
  const symbol = writer.symbol({ node, place, name, kind: 'object' });
  const scope = writer.open(place.scope, 'class', symbol);
  return tree.childrenAt(value, { scope, owner: symbol });
}

const holdsFunction = (part: Node): boolean =>
  part.type === 'method_definition' || functionValues.has(tree.field(part, 'value')?.type ?? '');

function readVariable(writer: Writer, { scope }: Place, name: string, node: Node): void {
  const type = typeOf(tree.field(node, 'type'));
  writer.variable(scope, name, type ?? tree.heldBy(syntax, tree.field(node, 'value')), type && 'typed');
}

const readDeclarator: Read = (writer, node, place) => {
  const pattern = tree.field(node, 'name');
  const value = tree.field(node, 'value');
  const required = requiredModule(value);
  if (required !== undefined) {
    readRequire(writer, node, required);
    return [];
  }
  if (pattern?.type !== 'identifier') {
    for (const name of boundNames(pattern)) writer.variable(place.scope, name);
    return tree.childrenAt(node, place);
  }
  const inside = value && readNamedValue(writer, { node, name: pattern.text, value }, place);
  if (inside) return inside;
  readVariable(writer, place, pattern.text, node);
  return tree.fieldAt(node, 'value', { scope: place.scope });
};

const readField: Read = (writer, node, place) => {
  const name = (tree.field(node, 'name') ?? tree.field(node, 'property') ?? tree.field(node, 'key'))?.text ?? '?';
  const value = tree.field(node, 'value');
  // Arrows in fields and objects see the class's `this`.
  const inside = value && readNamedValue(writer, { node, name, value }, place);
  const self = selfOf(writer, place.owner);
  if (inside) {
    const scope = value?.type === 'arrow_function' ? writer.outline.scopes[inside[0]?.[1].scope ?? -1] : undefined;
    if (scope) scope.self = self;
    return inside;
  }
  // One without a type and a value says nothing: what a method sets it to does.
  if (value || tree.field(node, 'type')) readVariable(writer, place, name, node);
  return value ? [[value, { scope: writer.open(place.scope, 'function', undefined, self) }]] : [];
};

/** `app.use = function () {}`, `Store.prototype.save = function () {}`, `this.close = () => {}`. */
function readHungFunction(writer: Writer, assigned: Record<'node' | 'left' | 'right', Node>, place: Place) {
  const { node, left, right } = assigned;
  const [, object, name] = /^([\w$.]+?)(?:\.prototype)?\.([\w$#]+)$/.exec(left.text) ?? [];
  if (!object || !name || !functionValues.has(right.type)) return undefined;
  const { outline } = writer;
  const method = object === 'this' ? scopesAround(outline, place.scope).find(({ self }) => self)?.symbol : undefined;
  const at = { scope: place.scope, owner: outline.symbols[method ?? -1]?.owner };
  const ownerName = object === 'this' ? undefined : object;
  const returns = typeOf(tree.field(right, 'return_type'));
  // A method also where its owner is not known: it cannot be called by its name alone.
  return enterFunction(writer, right, at, writer.symbol({ node, place: at, name, kind: 'method', ownerName, returns }));
}

const readAssignment: Read = (writer, node, place) => {
  const left = tree.field(node, 'left');
  const right = tree.field(node, 'right');
  if (!left || !right) return tree.childrenAt(node, place);
  const name = readExportedAssignment(writer, left, right);
  const inside = name
    ? readNamedValue(writer, { node, name, value: right }, { scope: place.scope })
    : readHungFunction(writer, { node, left, right }, place);
  if (inside) return inside;
  const property = /^this\.([\w$#]+)$/.exec(left.text)?.[1];
  const members = property === undefined ? undefined : tree.membersAround(writer, place.scope);
  // What a variable is set to later contradicts what it was first, unless both say the same.
  if (left.type === 'identifier') writer.variable(place.scope, left.text, tree.heldBy(syntax, right), 'assigned');
  else if (property !== undefined && members !== undefined)
    writer.variable(members, property, tree.fieldValue(writer, place.scope, tree.heldBy(syntax, right)));
  else tree.passes(syntax, writer, right, place);
  return [
    [left, place],
    [right, place],
  ];
};

/** `namespace A {}`: what it declares is known by its name inside, and as a member outside. */
const readNamespace: Read = (writer, node, place) => {
  let inner = place;
  for (const name of tree.nameOf(node).split('.')) inner = tree.enterNamespace(writer, node, inner, name);
  const { scope, owner } = inner;
  const isMember = ({ type }: Node) => /declaration$|signature$|^export_statement$/.test(type);
  return tree.namedIn(node, 'body').map(child => [child, isMember(child) ? { scope, owner } : { scope }]);
};

/** A block of which one field binds names. */
const binding =
  (pattern: string): Read =>
  (writer, node, place) => {
    const scope = writer.open(place.scope, 'block');
    for (const name of boundNames(tree.field(node, pattern))) writer.variable(scope, name);
    return tree.childrenAt(node, { scope });
  };

/** How TypeScript, TSX and JavaScript are read. */
export const typescriptReaders: Readers = {
  import_statement: readImport,
  export_statement: (writer, node, place) => {
    readExport(writer, node);
    const value = tree.field(node, 'value');
    const inside = value && readNamedValue(writer, { node, name: 'default', value }, place);
    return inside ?? tree.childrenAt(node, place);
  },
  ...tree.readersOf('function_declaration generator_function_declaration', declareFunction('function')),
  function_signature: declareFunction('function', true),
  method_definition: declareFunction('method'),
  ...tree.readersOf('method_signature abstract_method_signature', declareFunction('method', true)),
  ...tree.readersOf('arrow_function function_expression generator_function', (writer, node, { scope }) =>
    enterFunction(writer, node, { scope }),
  ),
  ...tree.readersOf('class_declaration abstract_class_declaration', declareType('class')),
  interface_declaration: declareType('interface'),
  internal_module: readNamespace,
  ...tree.readersOf('type_alias_declaration enum_declaration', declareType('type')),
  variable_declarator: readDeclarator,
  ...tree.readersOf('public_field_definition field_definition property_signature', readField),
  pair: (writer, node, place) => (place.owner === undefined ? tree.pairReader(syntax) : readField)(writer, node, place),
  ...tree.readersOf('object array jsx_expression return_statement decorator', tree.passesChildren(syntax)),
  ...tree.readersOf('call_expression new_expression', readCall),
  ...tree.readersOf('jsx_opening_element jsx_self_closing_element', (writer, node, place) => {
    const name = tree.field(node, 'name');
    // Lower-case names are the platform's own elements.
    if (name && /^[A-Z]|\./.test(name.text)) writer.call(place.scope, chain(name), 'renders', node);
    return tree.childrenAt(node, place).filter(([child]) => child.id !== name?.id);
  }),
  assignment_expression: readAssignment,
  ...tree.readersOf('statement_block for_statement', tree.block),
  for_in_statement: binding('left'),
  catch_clause: binding('parameter'),
  // The members of types that have no name can't be named either.
  ...tree.readersOf(
    'jsx_closing_element object_type function_type type_annotation type_arguments type_parameters',
    tree.nothing,
  ),
};
