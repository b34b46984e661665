import type { Node } from 'web-tree-sitter';
import type { Chain } from './outline.ts';
import {
  builtIn,
  type ChainSyntax,
  called,
  chainOf,
  field,
  fields,
  lineOf,
  named,
  type Sketch,
  stringText,
} from './outline-builder.ts';

/** `import a, { b as c } from 'd'`, `import * as e from 'd'`. */
export function readImport(sketch: Sketch, statement: Node): void {
  const from = stringText(field(statement, 'source'));
  const clause = named(statement).find(child => child.type === 'import_clause');
  if (from === '' || !clause) return;
  for (const part of named(clause)) {
    if (part.type === 'identifier') sketch.import(statement, { local: part.text, from, name: 'default' });
    if (part.type === 'namespace_import') {
      sketch.import(statement, { local: named(part)[0]?.text ?? '*', from, name: '*' });
    }
    if (part.type !== 'named_imports') continue;
    for (const specifier of named(part)) {
      const name = field(specifier, 'name')?.text;
      if (name) sketch.import(specifier, { local: field(specifier, 'alias')?.text ?? name, from, name });
    }
  }
}

/** What an export statement says besides its declaration, which is visited like any other. */
export function readExport({ outline }: Sketch, statement: Node): void {
  const line = lineOf(statement);
  const source = field(statement, 'source');
  const from = source && stringText(source);
  const declaration = field(statement, 'declaration');
  const isDefault = statement.children.some(child => child?.type === 'default');
  for (const name of declaredNames(declaration)) outline.exports.push({ as: isDefault ? 'default' : name, name, line });
  const value = field(statement, 'value');
  if (isDefault && value?.type === 'identifier') outline.exports.push({ as: 'default', name: value.text, line });
  // A default export without a name of its own is called what it is.
  if (isDefault && (value ?? declaration) && outline.exports.at(-1)?.as !== 'default') {
    outline.exports.push({ as: 'default', name: 'default', line });
  }
  const clause = named(statement).find(child => child.type === 'export_clause');
  const namespace = named(statement).find(child => child.type === 'namespace_export');
  for (const specifier of clause ? named(clause) : []) {
    const name = field(specifier, 'name')?.text;
    if (name) outline.exports.push({ as: field(specifier, 'alias')?.text ?? name, name, from, line });
  }
  if (from === undefined || clause) return;
  outline.exports.push({ as: namespace ? (named(namespace)[0]?.text ?? '*') : '*', name: '*', from, line });
}

function declaredNames(declaration: Node | undefined): string[] {
  if (!declaration) return [];
  const own = field(declaration, 'name')?.text;
  if (own) return [own];
  return named(declaration).flatMap(child => field(child, 'name')?.text ?? []);
}

/** The module of `require('x')`. */
export function requiredModule(value: Node | undefined): string | undefined {
  if (value?.type !== 'call_expression' || field(value, 'function')?.text !== 'require') return undefined;
  const first = named(field(value, 'arguments') ?? value)[0];
  return first?.type === 'string' ? stringText(first) : undefined;
}

/** `const a = require('x')`, `const { b, c: d } = require('x')`. */
export function readRequire(sketch: Sketch, declarator: Node, from: string): void {
  const pattern = field(declarator, 'name');
  if (pattern?.type === 'identifier') sketch.import(declarator, { local: pattern.text, from, name: '*' });
  for (const part of pattern?.type === 'object_pattern' ? named(pattern) : []) {
    const local = part.type === 'pair_pattern' ? field(part, 'value')?.text : part.text;
    const name = part.type === 'pair_pattern' ? field(part, 'key')?.text : part.text;
    if (local && name) sketch.import(part, { local, from, name });
  }
}

/** `exports.a = b`, `module.exports = c`, `module.exports = { d, e: f }`. A function or class there is named by its place. */
export function readExportedAssignment({ outline }: Sketch, left: Node, right: Node): string | undefined {
  const target = left.text;
  const line = lineOf(left);
  const single = /^(?:module\.)?exports\.([\w$]+)$/.exec(target)?.[1];
  if (single) {
    outline.exports.push({ as: single, name: right.type === 'identifier' ? right.text : single, line });
    return single;
  }
  if (target !== 'module.exports') return undefined;
  if (right.type === 'identifier') outline.exports.push({ as: 'default', name: right.text, line });
  for (const part of right.type === 'object' ? named(right) : []) {
    const key = part.type === 'pair' ? field(part, 'key')?.text : part.text;
    const value = part.type === 'pair' ? field(part, 'value') : part;
    if (key && value && /identifier/.test(value.type)) outline.exports.push({ as: key, name: value.text, line });
  }
  return 'default';
}

const transparent = new Set(
  'parenthesized_expression non_null_expression await_expression as_expression satisfies_expression'.split(' '),
);

export const typescriptSyntax: ChainSyntax = {
  names: new Set('identifier this super type_identifier shorthand_property_identifier property_identifier'.split(' ')),
  members: {
    member_expression: ['object', 'property'],
    nested_type_identifier: ['module', 'name'],
    nested_identifier: ['object', 'property'],
  },
  literals: new Set(['array', 'object', 'string', 'template_string', 'number', 'regex', 'true', 'false']),
  passable: new Set(['identifier', 'member_expression', 'shorthand_property_identifier']),
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
  return called(typescriptChain(type));
}

const bindings = new Set(['identifier', 'shorthand_property_identifier_pattern']);

/** All names that a pattern binds. */
export function boundNames(pattern: Node | undefined): string[] {
  if (!pattern) return [];
  const bound: string[] = [];
  const waiting = [pattern];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    if (bindings.has(node.type)) bound.push(node.text);
    else if (node.type === 'pair_pattern') waiting.push(...fields(node, 'value'));
    else if (node.type === 'assignment_pattern' || node.type === 'object_assignment_pattern') {
      waiting.push(...fields(node, 'left'));
    } else if (/_pattern$/.test(node.type)) waiting.push(...named(node));
  }
  return bound;
}
