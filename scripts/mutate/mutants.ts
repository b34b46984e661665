import { parseSync } from 'vite';

/** One change of a source file that the tests must notice. */
export interface Mutant {
  line: number;
  /** The text of that line, trimmed: what a survivor is recognized by after lines moved. */
  text: string;
  /** `before → after`, on one line. */
  change: string;
  /** The range of the source that `edited` replaces; undefined removes a statement. */
  start: number;
  end: number;
  edited: string | undefined;
}

interface Node {
  type: string;
  start: number;
  end: number;
  [field: string]: unknown;
}

/** A range of the source that one or more mutants replace. */
interface Site {
  start: number;
  end: number;
  kind: 'expression' | 'statement';
  /** Undefined removes a statement. */
  variants: { id: number; text: string | undefined }[];
}

const swaps: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '&&': '||',
  '||': '&&',
  '??': '&&',
  '+=': '-=',
  '-=': '+=',
  '*=': '/=',
  '++': '--',
  '--': '++',
  some: 'every',
  every: 'some',
  min: 'max',
  max: 'min',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
};

/** Methods whose call is replaced by the value that they are called on. */
const dropped = 'filter slice sort toSorted reverse toReversed trim trimStart trimEnd toLowerCase toUpperCase'.split(
  ' ',
);

const comparing = ['===', '!=='];
const ordering = ['<', '<=', '>', '>='];
const arithmetic = ['+', '-', '*', '/', '%'];

/** What can't be replaced by an expression, or holds no code. */
const opaque = /^(TS(?!AsExpression|SatisfiesExpression|NonNullExpression)|Import|ExportAll|MetaProperty)/;

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

function inner(node: unknown): Node | undefined {
  if (!isNode(node)) return undefined;
  return node.type === 'ParenthesizedExpression' ? inner(node.expression) : node;
}

function nodesOf(value: unknown): Node[] {
  return (Array.isArray(value) ? value : [value]).filter(isNode);
}

function isText(node: Node | undefined): boolean {
  if (node === undefined) return false;
  if (node.type === 'TemplateLiteral') return true;
  return node.type === 'Literal'
    ? typeof node.value === 'string'
    : node.operator === '+' && [node.left, node.right].some(each => isText(inner(each)));
}

/** Messages are free to change: only a word such as a kind, a name or a separator decides something. */
function decides(text: string): boolean {
  return text !== '' && !/\s\S*\s|[.!?:]$/.test(text) && text.length <= 40;
}

/** Lists the mutants of one file and writes each into the code, behind a question to `__mutant__`. */
export function instrument(path: string, source: string, firstId: number): { code: string; mutants: Mutant[] } {
  const { program, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`Cannot parse ${path}: ${errors[0]?.message}`);
  const mutants: Mutant[] = [];
  const sites = new Map<string, Site>();
  const lineStarts = [0, ...[...source.matchAll(/\n/g)].map(match => match.index + 1)];

  const cut = (node: Node) => source.slice(node.start, node.end);
  const brief = (text: string) => {
    const line = text.replaceAll(/\s+/g, ' ').trim();
    return line.length > 70 ? `${line.slice(0, 67)}...` : line;
  };

  /** `shown` is the part that the report quotes; `at` the replaced one; `edited` its text afterwards. */
  function add(shown: Node, changed: string | undefined, at: Node, edited: string | undefined): void {
    const kind = changed === undefined ? 'statement' : 'expression';
    const key = `${at.start}-${at.end}-${kind}`;
    const site = sites.get(key) ?? { start: at.start, end: at.end, kind, variants: [] };
    sites.set(key, site);
    const line = lineStarts.findLastIndex(start => start <= shown.start);
    const text = source.slice(lineStarts[line], (lineStarts[line + 1] ?? source.length + 1) - 1).trim();
    site.variants.push({ id: firstId + mutants.length, text: edited });
    mutants.push({
      ...{ start: at.start, end: at.end, edited: edited === undefined ? undefined : `(${edited})` },
      line: line + 1,
      text,
      change: `${brief(cut(shown))} → ${changed === undefined ? 'removed' : brief(changed)}`,
    });
  }

  /** Replaces `node` by `text` within the expression `site`, which may be a longer one that can't be parted. */
  function replace(node: Node, text: string, site: Node): void {
    add(node, text, site, source.slice(site.start, node.start) + text + source.slice(node.end, site.end));
  }

  /** Replaces the operator between two parts. */
  function swapOperator(node: Node, left: Node, right: Node, site: Node): void {
    const between = source.slice(left.end, right.start);
    const operator = String(node.operator);
    const swapped = between.replace(operator, () => swaps[operator] ?? operator);
    // `a || b ?? c` is no expression, so each part is set in parentheses.
    const text =
      operator === '??' || operator === '||' || operator === '&&'
        ? `(${cut(left)})${swapped}(${cut(right)})`
        : cut(left) + swapped + cut(right);
    replace(node, text, site);
  }

  function condition(test: Node): void {
    const node = inner(test);
    if (node === undefined || (node.type === 'BinaryExpression' && comparing.includes(String(node.operator)))) return;
    if (node.type === 'Literal') return;
    if (node.type === 'UnaryExpression' && node.operator === '!')
      replace(test, cut(nodesOf(node.argument)[0] ?? node), test);
    else replace(test, `!(${cut(test)})`, test);
  }

  function returned(value: Node): void {
    const node = inner(value);
    if (
      node === undefined ||
      /^(Literal|TemplateLiteral|ArrowFunctionExpression|FunctionExpression|JSX)/.test(node.type)
    )
      return;
    if (node.type === 'BinaryExpression' && [...comparing, ...ordering].includes(String(node.operator))) return;
    if (node.type === 'UnaryExpression' && node.operator === '!')
      replace(value, cut(nodesOf(node.argument)[0] ?? node), value);
    else if (node.type === 'Identifier' && node.name === 'undefined') return;
    else replace(value, 'undefined', value);
  }

  function visitCall(node: Node, site: Node): void {
    const callee = nodesOf(node.callee)[0];
    const property =
      callee?.type === 'MemberExpression' && callee.computed !== true ? nodesOf(callee.property)[0] : undefined;
    if (callee === undefined || property === undefined) return;
    const name = cut(property);
    const swapped = /^[a-z]/i.test(name) && Object.hasOwn(swaps, name) ? swaps[name] : undefined;
    const object = nodesOf(callee.object)[0];
    if (swapped !== undefined && (swapped.length !== 3 || (object !== undefined && cut(object) === 'Math'))) {
      const text = cut(node);
      const at = property.start - node.start;
      replace(node, text.slice(0, at) + swapped + text.slice(at + name.length), site);
    }
    if (object !== undefined && dropped.includes(name) && callee.optional !== true) replace(node, cut(object), site);
  }

  /** `site` is what an expression is replaced within: itself, or the chain with `?.` that it is part of. */
  function visit(node: Node, parent: Node | undefined, chain?: Node): void {
    if (opaque.test(node.type)) return;
    const site = chain ?? node;
    let spine: Node | undefined;
    switch (node.type) {
      case 'ChainExpression':
        spine = node;
        break;
      case 'IfStatement':
      case 'ConditionalExpression':
      case 'WhileStatement':
      case 'DoWhileStatement':
      case 'ForStatement':
        for (const test of nodesOf(node.test)) condition(test);
        break;
      case 'BinaryExpression':
      case 'LogicalExpression': {
        const [left, right] = [...nodesOf(node.left), ...nodesOf(node.right)];
        const operator = String(node.operator);
        const concatenates = arithmetic.includes(operator) && isText(node);
        if (left !== undefined && right !== undefined && Object.hasOwn(swaps, operator) && !concatenates)
          swapOperator(node, left, right, site);
        break;
      }
      case 'AssignmentExpression': {
        const [left, right] = [...nodesOf(node.left), ...nodesOf(node.right)];
        if (
          left !== undefined &&
          right !== undefined &&
          Object.hasOwn(swaps, String(node.operator)) &&
          !isText(inner(right))
        )
          swapOperator(node, left, right, node);
        break;
      }
      case 'UpdateExpression':
        replace(node, cut(node).replace(String(node.operator), swaps[String(node.operator)] ?? ''), node);
        break;
      case 'Literal':
        if (typeof node.value === 'boolean') replace(node, String(!node.value), node);
        if (typeof node.value === 'string' && decides(node.value) && !isTypeName(parent)) replace(node, "''", node);
        break;
      case 'CallExpression':
        visitCall(node, site);
        break;
      case 'ExpressionStatement':
        if (node.directive === undefined || node.directive === null) {
          if (!cut(node).startsWith('super(')) add(node, undefined, node, undefined);
        }
        break;
      case 'ThrowStatement':
      case 'ContinueStatement':
      case 'BreakStatement':
        if (parent?.type !== 'SwitchCase') add(node, undefined, node, undefined);
        break;
      case 'ReturnStatement': {
        const value = nodesOf(node.argument)[0];
        if (value === undefined) add(node, undefined, node, undefined);
        else returned(value);
        break;
      }
      case 'ArrowFunctionExpression':
        for (const body of nodesOf(node.body)) if (body.type !== 'BlockStatement') returned(body);
        break;
    }
    if (node.optional === true && chain !== undefined) {
      const from = (nodesOf(node.object)[0] ?? nodesOf(node.callee)[0] ?? node).end;
      const rest = source
        .slice(from, node.end)
        .replace(/\?\.(?=\s*[\w#$])/, '.')
        .replace('?.', '');
      replace(node, source.slice(node.start, from) + rest, chain);
    }
    for (const [name, value] of Object.entries(node)) {
      if (skips(node, name)) continue;
      const isSpine =
        (name === 'expression' && node.type === 'ChainExpression') || name === 'object' || name === 'callee';
      const within = isSpine ? (spine ?? chain) : undefined;
      for (const child of nodesOf(value)) visit(child, node, within);
    }
  }

  visit(program as unknown as Node, undefined);
  return { code: render(source, [...sites.values()]), mutants };
}

/** `typeof x === 'string'` without its word is what the swapped comparison is. */
function isTypeName(parent: Node | undefined): boolean {
  return (
    parent?.type === 'BinaryExpression' && [parent.left, parent.right].some(each => inner(each)?.operator === 'typeof')
  );
}

/** Parts of a node that hold no expression which may be replaced. */
function skips(node: Node, field: string): boolean {
  if (field === 'key' || field === 'property') return node.computed !== true;
  if (field === 'left') return node.type === 'AssignmentExpression' || node.type === 'AssignmentPattern';
  if (field === 'argument')
    return node.type === 'UpdateExpression' || (node.type === 'UnaryExpression' && node.operator === 'delete');
  if (field === 'typeAnnotation' || field === 'typeArguments' || field === 'typeParameters' || field === 'returnType')
    return true;
  if (field === 'source' || field === 'attributes') return true;
  return field === 'quasi' && node.type === 'TaggedTemplateExpression';
}

/** Writes all variants into the source: the innermost sites first, each within the last branch of the outer one. */
function render(source: string, sites: Site[]): string {
  // Outer before inner; of equal ranges the statement is the outer one.
  sites.sort((a, b) => a.start - b.start || b.end - a.end || (a.kind === 'statement' ? -1 : 1));
  let next = 0;
  function range(start: number, end: number): string {
    let text = '';
    let at = start;
    for (let site = sites[next]; site !== undefined && site.start < end && site.end <= end; site = sites[next]) {
      next += 1;
      text += source.slice(at, site.start) + branch(site);
      at = site.end;
    }
    return text + source.slice(at, end);
  }
  function branch(site: Site): string {
    const original = range(site.start, site.end);
    // In braces, so that an "else" after it stays with its own "if".
    if (site.kind === 'statement')
      return `{if(!(${site.variants.map(({ id }) => `__mutant__(${id})`).join('||')})){${original}}}`;
    return `(${site.variants.map(({ id, text }) => `__mutant__(${id})?(${text}):`).join('')}(${original}))`;
  }
  return range(0, source.length);
}
