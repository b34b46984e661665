import { lineAt } from './find-imports.ts';
import type { SourceFile, Violation } from './source-file.ts';
import type { HouseTable } from './table.ts';

interface CodeRule {
  pattern: RegExp;
  rule: Violation['rule'];
  message: string;
}

/** `name` as a global: not a property of something else, unless of globalThis. */
function global(name: string): RegExp {
  return new RegExp(`(?<![\\w$]|(?<!\\bglobalThis)\\.)${name}`, 'g');
}

const unproven: CodeRule[] = [
  {
    pattern: /(?<![\w$.])as\s+(?!\s|const\b)/g,
    rule: 'syntax',
    message: '`as` claims a type without proof: let a type guard or a parser prove it (only `as const` is allowed)',
  },
  {
    pattern: /(?<=[\w$)\]])!(?!=)/g,
    rule: 'syntax',
    message: '`!` claims that a value is there: check it, or give the type a shape in which it always is',
  },
  {
    pattern: /(?<![.\w$])any\b(?!\s*\(|:)/g,
    rule: 'syntax',
    message: '`any` switches the types off: use the real type, a type parameter, or `unknown` and a check',
  },
];

const defaultExport: CodeRule[] = [
  {
    pattern: /(?<![\w$.])export\s+default\b|(?<![\w$.])export\s*\{[^}]*\bas\s+default\b/g,
    rule: 'name',
    message: 'a default export has no name to search for: export it under the file name in camelCase',
  },
];

const pureOnly: CodeRule[] = [
  {
    pattern: global(
      'process\\s*(?:\\?\\.|\\.)\\s*(?:env|argv|cwd|chdir|stdin|stdout|stderr|exit|exitCode|hrtime|uptime|getBuiltinModule)\\b',
    ),
    rule: 'globals',
    message: 'the process belongs to app.ts: take the value, or a function, as a parameter',
  },
  {
    pattern: /=\s*(?:globalThis\s*\.\s*)?process\s*[;,)\n]|(?<![\w$.])process\s*(?:\?\.)?\[/g,
    rule: 'globals',
    message: 'the process belongs to app.ts: take the value, or a function, as a parameter',
  },
  {
    pattern: global(
      '(?:Date\\s*\\.\\s*now\\b|performance\\s*\\.\\s*(?:now|timeOrigin)\\b|new\\s+Date\\b\\s*(?:\\(\\s*\\)|(?!\\s*\\())|(?<!new\\s+)Date\\s*\\()',
    ),
    rule: 'globals',
    message: 'time arrives as the Clock of domain/ports.ts, so that tests can move it',
  },
  {
    pattern: global('(?:setTimeout|setInterval)\\b'),
    rule: 'globals',
    message: 'waiting goes through the Clock of domain/ports.ts (sleep, after), so that tests can move it',
  },
  {
    pattern:
      /\bMath\s*\.\s*random\b|\b(?:randomUUID|randomBytes|randomInt|randomFill|randomFillSync|getRandomValues)\b/g,
    rule: 'globals',
    message: 'chance arrives as the Random of domain/ports.ts, so that tests can repeat it',
  },
  {
    pattern: global('console\\s*(?:\\?\\.|\\.|\\[)'),
    rule: 'globals',
    message: 'stdout is the protocol: tell it with the Emit of domain/ports.ts',
  },
];

/** `import { a as b }`, `export * as b` and `[K in keyof T as U]` rename; they do not cast. */
function withoutRenames(code: string): string {
  const blank = (text: string): string => text.replace(/\bas\b/g, '  ');
  return code
    .replace(/(?<![\w$.])(?:import|export)\s*(?:type\b\s*)?(?:[\w$]+\s*,\s*)?(?:\*\s*as\b|\{[^}]*\})/g, blank)
    .replace(/\[\s*[\w$]+\s+in\s[^{}\n]*?\bas\s/g, blank);
}

function matches(file: SourceFile, code: string, rules: readonly CodeRule[]): Violation[] {
  return rules.flatMap(({ pattern, rule, message }) =>
    [...code.matchAll(pattern)].map(({ index }) => ({
      path: file.path,
      line: lineAt(code, index),
      rule,
      message,
    })),
  );
}

/** What the code itself may not say: unproven types, default exports, and ambient state where a room has to be pure. */
export function checkCode(files: readonly SourceFile[], table: HouseTable): Violation[] {
  return files.flatMap(file => {
    const pure = table.rooms[file.place.split('/', 1)[0] ?? '']?.pure ?? false;
    return [
      ...matches(file, withoutRenames(file.code), unproven),
      ...matches(file, file.code, pure ? [...defaultExport, ...pureOnly] : defaultExport),
    ];
  });
}
