import type { Node } from 'web-tree-sitter';
import type { Chain } from './outline.ts';
import {
  type ChainSyntax,
  called,
  chainOf,
  childrenAt,
  field,
  fieldAt,
  fields,
  heldBy,
  insideAt,
  membersAround,
  named,
  namedIn,
  nameOf,
  nothing,
  type Place,
  pass,
  passesChildren,
  type Read,
  type Readers,
  readersOf,
  type Sketch,
} from './outline-builder.ts';

const syntax: ChainSyntax = {
  names: new Set(['identifier']),
  members: { attribute: ['object', 'attribute'] },
  literals: new Set(
    'list dictionary set tuple string integer float true false list_comprehension dictionary_comprehension set_comprehension'.split(
      ' ',
    ),
  ),
  passable: new Set(['identifier', 'attribute']),
  callee: node => (node.type === 'call' ? field(node, 'function') : undefined),
  inside: node => (node.type === 'parenthesized_expression' || node.type === 'await' ? named(node)[0] : undefined),
};

const chain = (node: Node): Chain => chainOf(syntax, node);

/** `Store`, `stores.Store`, `Store | None`, `Optional[Store]`. */
function typeOf(annotation: Node | undefined): Chain | undefined {
  let type = annotation?.type === 'type' ? named(annotation)[0] : annotation;
  if (type?.type === 'binary_operator') {
    const sides = [field(type, 'left'), field(type, 'right')].filter(side => side && side.text !== 'None');
    type = sides.length === 1 ? sides[0] : undefined;
  }
  if (type?.type === 'generic_type' && named(type)[0]?.text === 'Optional') {
    const parameter = named(type)[1];
    return typeOf(parameter && named(parameter)[0]);
  }
  return type?.type === 'identifier' || type?.type === 'attribute' ? called(chain(type)) : undefined;
}

const readFunction: Read = (sketch, node, place) => {
  const name = nameOf(node);
  const kind = place.owner === undefined ? 'function' : 'method';
  const symbol = sketch.symbol({ node, place, name, kind, returns: typeOf(field(node, 'return_type')) });
  const parameters = named(field(node, 'parameters') ?? node);
  const owner = place.owner === undefined ? undefined : sketch.outline.symbols[place.owner];
  const decorated = node.parent?.type === 'decorated_definition' ? node.parent.text.slice(0, 40) : '';
  const receiver =
    parameters[0]?.type === 'identifier' && !/^@staticmethod\b/.test(decorated) ? parameters[0] : undefined;
  const self = owner && receiver ? { name: receiver.text, type: called([owner.name]) } : undefined;
  const scope = sketch.open(place.scope, 'function', symbol, self);
  readParameters(sketch, self ? parameters.slice(1) : parameters, scope);
  // Defaults are worked out where the function is defined.
  const defaults = parameters.flatMap(parameter => fieldAt(parameter, 'value', place));
  return [...defaults, ...insideAt(node, 'body', { scope })];
};

function readParameters(sketch: Sketch, parameters: readonly Node[], scope: number): void {
  for (const parameter of parameters) {
    const inner = field(parameter, 'name') ?? (parameter.type === 'identifier' ? parameter : named(parameter)[0]);
    if (inner) sketch.variable(scope, inner.text.replace(/^\*+/, ''), typeOf(field(parameter, 'type')));
  }
}

const readLambda: Read = (sketch, node, place) => {
  const scope = sketch.open(place.scope, 'function');
  readParameters(sketch, namedIn(node, 'parameters'), scope);
  return fieldAt(node, 'body', { scope });
};

const readClass: Read = (sketch, node, place) => {
  const name = nameOf(node);
  const symbol = sketch.symbol({ node, place: { scope: place.scope }, name, kind: 'class' });
  for (const parent of namedIn(node, 'superclasses')) {
    if (parent.type === 'keyword_argument' || parent.type === 'comment') continue;
    const target = parent.type === 'subscript' ? field(parent, 'value') : parent;
    if (target) sketch.relation(symbol, 'extends', chain(target), parent);
  }
  const scope = sketch.open(place.scope, 'class', symbol);
  return insideAt(node, 'body', { scope, owner: symbol });
};

const readAssignment: Read = (sketch, node, place) => {
  const left = field(node, 'left');
  const right = field(node, 'right');
  const value = typeOf(field(node, 'type')) ?? heldBy(syntax, right);
  if (left?.type === 'identifier') sketch.variable(place.scope, left.text, value);
  else if (left?.type === 'attribute') assignField(sketch, left, value, place);
  else bindAll(sketch, left, place);
  if (left?.type !== 'subscript') return fieldAt(node, 'right', place);
  pass(syntax, sketch, right, place);
  return [...childrenAt(left, place), ...fieldAt(node, 'right', place)];
};

function assignField(sketch: Sketch, left: Node, value: Chain | undefined, { scope }: Place): void {
  const target = chain(left);
  const [object, name] = target;
  const members = membersAround(sketch, scope);
  if (target.length !== 2 || name === undefined || members === undefined) return;
  if (object === selfName(sketch, scope)) sketch.variable(members, name, value);
}

function selfName({ outline }: Sketch, from: number): string | undefined {
  for (let at: number | undefined = from; at !== undefined; at = outline.scopes[at]?.parent) {
    const name = outline.scopes[at]?.self?.name;
    if (name !== undefined) return name;
  }
  return undefined;
}

/** Names that a loop, a `with` or an unpacking binds to who knows what. */
function bindAll(sketch: Sketch, pattern: Node | undefined, { scope }: Place): void {
  const waiting = pattern ? [pattern] : [];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (node.type === 'identifier') sketch.variable(scope, node.text);
    else if (node.type !== 'attribute' && node.type !== 'subscript') waiting.push(...named(node));
  }
}

/** What `with … as name` and `except … as name` bind is for the object to decide. */
const readAs: Read = (sketch, node, place) => {
  bindAll(sketch, field(node, 'alias'), place);
  const value = named(node)[0];
  return value ? [[value, place]] : [];
};

const readCall: Read = (sketch, node, place) => {
  const callee = field(node, 'function');
  const list = field(node, 'arguments');
  if (callee) sketch.call(place.scope, chain(callee), 'calls', node);
  for (const argument of list?.type === 'argument_list' ? named(list) : []) {
    pass(syntax, sketch, argument.type === 'keyword_argument' ? field(argument, 'value') : argument, place);
  }
  return childrenAt(node, place);
};

const readPair: Read = (sketch, node, place) => {
  pass(syntax, sketch, field(node, 'value'), place);
  return childrenAt(node, place);
};

const readImport: Read = (sketch, node) => {
  for (const part of fields(node, 'name')) {
    const module = (part.type === 'aliased_import' ? field(part, 'name') : part)?.text ?? '';
    const alias = field(part, 'alias')?.text;
    // `import a.b` binds `a`, and loads `a.b`.
    const first = module.split('.')[0] ?? module;
    sketch.import(node, { local: alias ?? first, from: alias ? module : first, name: '*' });
    if (!alias && module !== first) sketch.import(node, { local: module, from: module, name: '*' });
  }
  return [];
};

const readImportFrom: Read = (sketch, node) => {
  const from = field(node, 'module_name')?.text ?? '';
  if (named(node).some(child => child.type === 'wildcard_import')) sketch.import(node, { local: '*', from, name: '*' });
  for (const part of fields(node, 'name')) {
    const name = (part.type === 'aliased_import' ? field(part, 'name') : part)?.text ?? '';
    sketch.import(node, { local: field(part, 'alias')?.text ?? name, from, name });
  }
  return [];
};

/** How Python is read. */
export const pythonReaders: Readers = {
  function_definition: readFunction,
  class_definition: readClass,
  lambda: readLambda,
  assignment: readAssignment,
  named_expression: (sketch, node, place) => {
    const name = field(node, 'name');
    if (name) sketch.variable(place.scope, name.text, heldBy(syntax, field(node, 'value')));
    return childrenAt(node, place);
  },
  ...readersOf('for_statement for_in_clause', (sketch, node, place) => {
    bindAll(sketch, field(node, 'left'), place);
    return childrenAt(node, place);
  }),
  as_pattern: readAs,
  call: readCall,
  ...readersOf('decorator list tuple set return_statement', passesChildren(syntax)),
  pair: readPair,
  import_statement: readImport,
  import_from_statement: readImportFrom,
  ...readersOf('future_import_statement type', nothing),
};
