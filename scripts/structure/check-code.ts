import { lineAt } from './find-imports.ts';
import type { StructureRules } from './rules.ts';
import type { SourceFile, Violation } from './source-file.ts';

interface CodeRule {
  pattern: RegExp;
  rule: Violation['rule'];
  message: string;
}

/** Matches `name` as a global: not as a property, except of globalThis. */
function global(name: string): RegExp {
  return new RegExp(`(?<![\\w$]|(?<!\\bglobalThis)\\.)${name}`, 'g');
}

const unproven: CodeRule[] = [
  {
    pattern: /(?<![\w$.])as\s+(?!\s|const\b)/g,
    rule: 'syntax',
    message: '`as` claims a type without proof: use a type guard or a parser (only `as const` is allowed).',
  },
  {
    pattern: /(?<=[\w$)\]])!(?!=)/g,
    rule: 'syntax',
    message: '`!` claims without proof that a value exists: check it, or change the type so that it always exists.',
  },
  {
    pattern: /(?<![.\w$])any\b(?!\s*\(|:)/g,
    rule: 'syntax',
    message: '`any` disables type checking: use the real type, a type parameter, or `unknown` with a check.',
  },
];

const defaultExport: CodeRule[] = [
  {
    pattern: /(?<![\w$.])export\s+default\b|(?<![\w$.])export\s*\{[^}]*\bas\s+default\b/g,
    rule: 'name',
    message: 'A default export has no name to search for: export it under the file name in camelCase.',
  },
];

const processMessage = 'Only app, server and cli use the process: take the value, or a function, as a parameter.';

const pureOnly: CodeRule[] = [
  {
    pattern: global(
      'process\\s*(?:\\?\\.|\\.)\\s*(?:env|argv|cwd|chdir|stdin|stdout|stderr|exit|exitCode|hrtime|uptime|getBuiltinModule)\\b',
    ),
    rule: 'globals',
    message: processMessage,
  },
  {
    pattern: /=\s*(?:globalThis\s*\.\s*)?process\s*[;,)\n]|(?<![\w$.])process\s*(?:\?\.)?\[/g,
    rule: 'globals',
    message: processMessage,
  },
  {
    pattern: global(
      '(?:Date\\s*\\.\\s*now\\b|performance\\s*\\.\\s*(?:now|timeOrigin)\\b|new\\s+Date\\b\\s*(?:\\(\\s*\\)|(?!\\s*\\())|(?<!new\\s+)Date\\s*\\()',
    ),
    rule: 'globals',
    message: 'Take time from the Clock of core/ports.ts, so that tests can set it.',
  },
  {
    pattern:
      /\bMath\s*\.\s*random\b|\b(?:randomUUID|randomBytes|randomInt|randomFill|randomFillSync|getRandomValues)\b/g,
    rule: 'globals',
    message: 'Take random values from the Random of core/ports.ts, so that tests can repeat them.',
  },
  {
    pattern: global('console\\s*(?:\\?\\.|\\.|\\[)'),
    rule: 'globals',
    message: 'Standard output carries the protocol: send an event with the Emit of core/ports.ts.',
  },
];

/** Blanks the `as` of `import { a as b }`, `export * as b` and `[K in keyof T as U]`, which rename and do not cast. */
function withoutRenames(code: string): string {
  const blank = (text: string): string => text.replace(/\bas\b/g, '  ');
  return code
    .replace(/(?<![\w$.])(?:import|export)\s*(?:type\b\s*)?(?:[\w$]+\s*,\s*)?(?:\*\s*as\b|\{[^}]*\})/g, blank)
    .replace(/\[\s*[\w$]+\s+in\s[^{}\n]*?\bas\s/g, blank);
}

const timers: CodeRule = {
  pattern: global('(?:setTimeout|setInterval)\\b'),
  rule: 'globals',
  message: 'Wait with the Clock of core/ports.ts (sleep, after), so that tests can set it.',
};

function matches(file: SourceFile, code: string, rules: readonly CodeRule[]): Violation[] {
  return rules.flatMap(({ pattern, rule, message }) =>
    [...code.matchAll(pattern)].map(({ index }) => ({ path: file.path, line: lineAt(code, index), rule, message })),
  );
}

/** Checks the code itself: unproven types, default exports, and ambient state in pure folders. */
export function checkCode(files: readonly SourceFile[], rules: StructureRules): Violation[] {
  return files.flatMap(file => {
    const pure = rules.pure.includes(file.place.split('/', 1)[0] ?? '');
    const onlyPure = rules.timers.includes(file.place) ? pureOnly : [...pureOnly, timers];
    return [
      ...matches(file, withoutRenames(file.code), unproven),
      ...matches(file, file.code, pure ? [...defaultExport, ...onlyPure] : defaultExport),
    ];
  });
}
