import type { Node } from 'web-tree-sitter';
import { type Chain, scopesAround } from './outline.ts';
import type { ChainSyntax, Place, Read, Readers, Writer } from './outline-builder.ts';
import * as tree from './outline-builder.ts';

const syntax: ChainSyntax = {
  names: new Set(['identifier']),
  members: { attribute: ['object', 'attribute'] },
  literals: new Set(
    'list dictionary set tuple string integer float true false list_comprehension dictionary_comprehension set_comprehension'.split(
      ' ',
    ),
  ),
  passable: new Set(['identifier', 'attribute']),
  callees: { call: 'function' },
  inside: node => (node.type === 'parenthesized_expression' || node.type === 'await' ? tree.named(node)[0] : undefined),
};

const chain = (node: Node): Chain => tree.chainOf(syntax, node);

/** `Store`, `stores.Store`, `Store | None`, `Optional[Store]`, and `"Store"`, which is declared later. */
function typeOf(annotation: Node | undefined): Chain | undefined {
  let type = annotation?.type === 'type' ? tree.named(annotation)[0] : annotation;
  if (type?.type === 'binary_operator') {
    const sides = [tree.field(type, 'left'), tree.field(type, 'right')].filter(side => side && side.text !== 'None');
    type = sides.length === 1 ? sides[0] : undefined;
  }
  if (type?.type === 'generic_type' && tree.named(type)[0]?.text === 'Optional') {
    const parameter = tree.named(type)[1];
    return typeOf(parameter && tree.named(parameter)[0]);
  }
  const quoted = type?.type === 'string' ? /^([\w.]+)(?: *\| *None)?$/.exec(tree.stringText(type))?.[1] : undefined;
  if (quoted) return tree.called(quoted.split('.'));
  return type?.type === 'identifier' || type?.type === 'attribute' ? tree.called(chain(type)) : undefined;
}

const readFunction: Read = (writer, node, place) => {
  const name = tree.nameOf(node);
  const kind = place.owner === undefined ? 'function' : 'method';
  const symbol = writer.symbol({ node, place, name, kind, returns: typeOf(tree.field(node, 'return_type')) });
  const parameters = tree.named(tree.field(node, 'parameters') ?? node);
  const owner = place.owner === undefined ? undefined : writer.outline.symbols[place.owner];
  const decorated = node.parent?.type === 'decorated_definition' ? node.parent.text.slice(0, 40) : '';
  const receiver =
    parameters[0]?.type === 'identifier' && !/^@staticmethod\b/.test(decorated) ? parameters[0] : undefined;
  const self = owner && receiver ? { name: receiver.text, type: tree.called([owner.name]) } : undefined;
  const scope = writer.open(place.scope, 'function', symbol, self);
  readParameters(writer, self ? parameters.slice(1) : parameters, scope);
  // Defaults are worked out where the function is defined.
  const defaults = parameters.flatMap(parameter => tree.fieldAt(parameter, 'value', place));
  return [...defaults, ...tree.insideAt(node, 'body', { scope })];
};

function readParameters(writer: Writer, parameters: readonly Node[], scope: number): void {
  for (const parameter of parameters) {
    const inner =
      tree.field(parameter, 'name') ?? (parameter.type === 'identifier' ? parameter : tree.named(parameter)[0]);
    if (inner) writer.variable(scope, inner.text.replace(/^\*+/, ''), typeOf(tree.field(parameter, 'type')), 'typed');
  }
}

const readAssignment: Read = (writer, node, place) => {
  const left = tree.field(node, 'left');
  const right = tree.field(node, 'right');
  const type = typeOf(tree.field(node, 'type'));
  const value = type ?? tree.heldBy(syntax, right);
  if (left?.type === 'identifier') writer.variable(place.scope, left.text, value, type && 'typed');
  else if (left?.type === 'attribute') assignField(writer, left, value, place, type && 'typed');
  else bindAll(writer, left, place);
  if (left?.type !== 'subscript') return tree.fieldAt(node, 'right', place);
  tree.passes(syntax, writer, right, place);
  return [...tree.childrenAt(left, place), ...tree.fieldAt(node, 'right', place)];
};

function assignField(writer: Writer, left: Node, value: Chain | undefined, { scope }: Place, how?: 'typed'): void {
  const target = chain(left);
  const [object, name] = target;
  const members = tree.membersAround(writer, scope);
  if (target.length !== 2 || name === undefined || members === undefined) return;
  const around = scopesAround(writer.outline, scope).find(({ self }) => self);
  if (object === around?.self?.name) writer.variable(members, name, tree.fieldValue(writer, scope, value), how);
}

/** Names that a loop, a `with` or an unpacking binds to who knows what. */
function bindAll(writer: Writer, pattern: Node | undefined, { scope }: Place): void {
  const waiting = pattern ? [pattern] : [];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (node.type === 'identifier') writer.variable(scope, node.text);
    else if (node.type !== 'attribute' && node.type !== 'subscript') waiting.push(...tree.named(node));
  }
}

const readCall = tree.callReader(syntax, () => 'calls');

/** How Python is read. */
export const pythonReaders: Readers = {
  function_definition: readFunction,
  class_definition: (writer, node, place) => {
    const name = tree.nameOf(node);
    const symbol = writer.symbol({ node, place: { scope: place.scope }, name, kind: 'class' });
    for (const parent of tree.namedIn(node, 'superclasses')) {
      if (parent.type === 'keyword_argument' || parent.type === 'comment') continue;
      const target = parent.type === 'subscript' ? tree.field(parent, 'value') : parent;
      if (target) writer.relation(symbol, 'extends', chain(target), parent);
    }
    const scope = writer.open(place.scope, 'class', symbol);
    return tree.insideAt(node, 'body', { scope, owner: symbol });
  },
  lambda: (writer, node, place) => {
    const scope = writer.open(place.scope, 'function');
    readParameters(writer, tree.namedIn(node, 'parameters'), scope);
    return tree.fieldAt(node, 'body', { scope });
  },
  assignment: readAssignment,
  named_expression: (writer, node, place) => {
    const name = tree.field(node, 'name');
    if (name) writer.variable(place.scope, name.text, tree.heldBy(syntax, tree.field(node, 'value')));
    return tree.childrenAt(node, place);
  },
  ...tree.readersOf('for_statement for_in_clause', (writer, node, place) => {
    bindAll(writer, tree.field(node, 'left'), place);
    return tree.childrenAt(node, place);
  }),
  // What `with … as name` and `except … as name` bind is for the object to decide.
  as_pattern: (writer, node, place) => {
    bindAll(writer, tree.field(node, 'alias'), place);
    return tree.childrenAt(node, place).slice(0, 1);
  },
  call: (writer, node, place) =>
    // `super()` calls nothing by itself.
    tree.field(node, 'function')?.text === 'super' ? [] : readCall(writer, node, place),
  ...tree.readersOf('decorator list tuple set return_statement', tree.passesChildren(syntax)),
  pair: tree.pairReader(syntax),
  import_statement: (writer, node) => {
    for (const part of tree.fields(node, 'name')) {
      const module = (part.type === 'aliased_import' ? tree.field(part, 'name') : part)?.text ?? '';
      const alias = tree.field(part, 'alias')?.text;
      // `import a.b` binds `a`, and loads `a.b`.
      const first = module.split('.')[0] ?? module;
      writer.import(node, { local: alias ?? first, from: alias ? module : first, name: '*' });
      if (!alias && module !== first) writer.import(node, { local: module, from: module, name: '*' });
    }
    return [];
  },
  import_from_statement: (writer, node) => {
    const from = tree.field(node, 'module_name')?.text ?? '';
    if (tree.named(node).some(child => child.type === 'wildcard_import'))
      writer.import(node, { local: '*', from, name: '*' });
    for (const part of tree.fields(node, 'name')) {
      const name = (part.type === 'aliased_import' ? tree.field(part, 'name') : part)?.text ?? '';
      writer.import(node, { local: tree.field(part, 'alias')?.text ?? name, from, name });
    }
    return [];
  },
  ...tree.readersOf('future_import_statement type', tree.nothing),
};
