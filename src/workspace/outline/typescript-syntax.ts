import type { Node } from 'web-tree-sitter';
import type { Chain } from './outline.ts';
import { type ChainSyntax, chainOf, field, named } from './outline-builder.ts';

const names = new Set([
  'identifier',
  'this',
  'super',
  'type_identifier',
  'shorthand_property_identifier',
  'property_identifier',
]);
const transparent = new Set([
  'parenthesized_expression',
  'non_null_expression',
  'await_expression',
  'as_expression',
  'satisfies_expression',
]);

const typescriptSyntax: ChainSyntax = {
  name: node => (names.has(node.type) ? node.text : undefined),
  member(node) {
    if (
      node.type !== 'member_expression' &&
      node.type !== 'nested_type_identifier' &&
      node.type !== 'nested_identifier'
    )
      return undefined;
    const object = field(node, 'object') ?? field(node, 'module');
    const name = field(node, 'property') ?? field(node, 'name');
    return object && name ? { object, name: name.text } : undefined;
  },
  callee: node =>
    node.type === 'call_expression'
      ? field(node, 'function')
      : node.type === 'new_expression'
        ? field(node, 'constructor')
        : undefined,
  inside: node => (transparent.has(node.type) ? named(node)[0] : undefined),
};

export function typescriptChain(node: Node): Chain {
  return chainOf(typescriptSyntax, node);
}

/** A type as a chain whose last part is called; undefined for what is no single named type. */
export function typescriptType(annotation: Node | undefined): Chain | undefined {
  let type = annotation?.type === 'type_annotation' ? named(annotation)[0] : annotation;
  if (type?.type === 'union_type') {
    const parts = named(type).filter(part => !/^(undefined|null)$/.test(part.text));
    type = parts.length === 1 ? parts[0] : undefined;
  }
  if (type?.type === 'generic_type') {
    const name = field(type, 'name');
    // What was promised is what `await` gives.
    if (name?.text === 'Promise') return typescriptType(named(field(type, 'type_arguments') ?? type)[0]);
    type = name;
  }
  if (type?.type === 'array_type' || type?.type === 'tuple_type' || type?.type === 'predefined_type') return builtIn;
  if (type?.type !== 'type_identifier' && type?.type !== 'nested_type_identifier') return undefined;
  const chain = typescriptChain(type);
  return [...chain.slice(0, -1), `${chain.at(-1)}()`];
}

/** A value of the language itself, by a name that no source can declare. */
const builtIn: Chain = ['(built in)()'];
const literals = new Set(['array', 'object', 'string', 'template_string', 'number', 'regex', 'true', 'false']);

/** What a value is, if that can be told. */
export function typescriptValue(value: Node): Chain | undefined {
  if (literals.has(value.type)) return builtIn;
  const chain = typescriptChain(value);
  return chain[0] === '?' ? undefined : chain;
}

const bindings = new Set(['identifier', 'shorthand_property_identifier_pattern']);

/** All names that a pattern binds. */
export function boundNames(pattern: Node | undefined): string[] {
  if (!pattern) return [];
  const bound: string[] = [];
  const waiting = [pattern];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (bindings.has(node.type)) bound.push(node.text);
    else if (node.type === 'pair_pattern') waiting.push(...present(field(node, 'value')));
    else if (node.type === 'assignment_pattern' || node.type === 'object_assignment_pattern') {
      waiting.push(...present(field(node, 'left')));
    } else if (/_pattern$/.test(node.type)) waiting.push(...named(node));
  }
  return bound;
}

function present(node: Node | undefined): Node[] {
  return node ? [node] : [];
}
