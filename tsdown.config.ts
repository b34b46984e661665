import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'tsdown';
import { type Emits, grammars, vocabulary } from './scripts/build/assets.ts';
import { leanPackages, packageChanges } from './scripts/build/package-changes.ts';

/** Named after the package that a piece holds, so that a list of loaded pieces tells which packages are loaded. */
function pieceName(piece: { name: string; facadeModuleId?: string | null; moduleIds: string[] }): string {
  const packageOf = (id: string) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1];
  const packages = piece.moduleIds.map(packageOf);
  const [first] = packages;
  const held = packages.includes(undefined) ? undefined : (packageOf(piece.facadeModuleId ?? '') ?? first);
  return `${held?.replace(/^@/, '').replaceAll('/', '-') ?? piece.name}-[hash].cjs`;
}

/** Packages whose files are copied as they are, or that are installed beside this one. */
const copied = ['web-tree-sitter', '@vscode/tree-sitter-wasm', 'unpdf'].map(name => join('node_modules', name));

/** Licenses under which a package may be bundled. */
const allowedLicenses = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT'];

/** Writes the licenses of all packages that are bundled, each text once with the packages that it is of. */
const licenses = {
  name: 'licenses',
  generateBundle(
    this: { emitFile(file: { type: 'asset'; fileName: string; source: string }): void },
    _options: unknown,
    bundle: Record<string, { moduleIds?: string[] }>,
  ) {
    const modules = Object.values(bundle).flatMap(({ moduleIds = [] }) => moduleIds);
    const folders = modules.flatMap(id => /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.replace(/^\0/, ''))?.[0] ?? []);
    const texts = new Map<string, string[]>();
    for (const folder of [...new Set([...folders, ...copied])].sort()) {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      if (!allowedLicenses.includes(license))
        throw new Error(`${name} ${version} is under "${license}", which is not in allowedLicenses`);
      const file = readdirSync(folder).find(each => /^(licen[cs]e|copying)/i.test(each));
      const text = file === undefined ? `License: ${license}` : readFileSync(join(folder, file), 'utf8').trim();
      texts.set(text, [...(texts.get(text) ?? []), `${name} ${version} (${license})`]);
    }
    const source = [...texts]
      .map(([text, names]) => `${names.join('\n')}\n\n${text}\n`)
      .join(`\n${'='.repeat(80)}\n\n`);
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY-LICENSES.txt', source });
  },
};

/** Programs of worker threads: name → source. */
const threads = {
  'sqlite-writer': 'src/storage/sqlite/writer.ts',
  'index-thread': 'src/workspace/search-index/index-worker.ts',
  'work-thread': 'src/workspace/workers/worker.ts',
};

interface Entry {
  name: string;
  exports: readonly string[];
}

/**
 * All pieces are CommonJS, which `src/code-cache.ts` can load with compiled code. The library has a module in front that names
 * what it exports, and each thread a file that loads its program.
 */
const fronts = {
  name: 'fronts',
  generateBundle(this: Emits, _options: unknown, bundle: Record<string, Partial<Entry>>) {
    const names = Object.values(bundle).find(({ name }) => name === 'index')?.exports ?? [];
    const library = `import library from './index.cjs';\nexport const { ${names.join(', ')} } = library;\n`;
    this.emitFile({ type: 'asset', fileName: 'index.js', source: library });
    for (const thread of Object.keys(threads)) {
      const source = `require('./code-cache.cjs').loadCompiled(require.resolve('./${thread}-program.cjs'));\n`;
      this.emitFile({ type: 'asset', fileName: `${thread}.cjs`, source });
    }
  },
};

/** V8 keeps two bytes of each character of a text that has others than ASCII, and most pieces would have some. */
const ascii = {
  name: 'ascii',
  generateBundle: {
    order: 'post' as const,
    handler(_options: unknown, bundle: Record<string, { code?: string }>) {
      for (const [name, piece] of Object.entries(bundle)) {
        if (/\\[\u0080-\uffff]/.test(piece.code ?? ''))
          throw new Error(`${name} has a backslash before what is no ASCII.`);
        piece.code = piece.code?.replace(
          /[\u0080-\uffff]/g,
          each => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
        );
      }
    },
  },
};

const shared = { platform: 'node', target: 'node24', fixedExtension: false, minify: true, dts: false } as const;

const pieces = defineConfig({
  ...shared,
  entry: {
    index: 'src/index.ts',
    program: 'src/cli/program.ts',
    'code-cache': 'src/code-cache.ts',
    ...Object.fromEntries(Object.entries(threads).map(([name, source]) => [`${name}-program`, source])),
  },
  format: 'cjs',
  // Its main file finds its parts by a require that no bundler can follow.
  alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  outputOptions: { chunkFileNames: pieceName, strict: true, dynamicImportInCjs: false },
  // The parser's loader uses eval for an extension mechanism that its builds without dynamic code never reach.
  inputOptions: { checks: { eval: false } },
  plugins: [...packageChanges, grammars, vocabulary, licenses, fronts, ascii],
  copy: [
    { from: 'src/core/vocabulary.gen.bin', to: 'dist' },
    { from: 'src/models/routing/freshness.gen.bin', to: 'dist' },
    { from: 'src/server/dashboard/dashboard.{css,js}', to: 'dist' },
    { from: 'src/providers/external-cli/clis/gemini-policy.toml', to: 'dist' },
  ],
  deps: { alwaysBundle: [/.*/], neverBundle: ['unpdf'], onlyBundle: false },
});

/** What Node is started with: a module, as package.json says, that loads the pieces. */
const main = defineConfig({
  ...shared,
  entry: { main: 'src/main.ts' },
  format: 'esm',
  clean: false,
  deps: { neverBundle: [/program\.ts$/] },
});

/** Of the declarations that vendors' packages name, nobody looks into those of JSON Schema, and they are in no package here. */
const withoutJsonSchema = {
  name: 'without-json-schema',
  generateBundle: {
    order: 'post' as const,
    handler(_options: unknown, bundle: Record<string, { type: string; code?: string }>) {
      for (const piece of Object.values(bundle)) {
        piece.code = piece.code?.replace(
          /^import \{ JSONSchema7 \} from "json-schema";$/m,
          'type JSONSchema7 = object;',
        );
      }
    },
  },
};

/** The types of the library, in one file without imports: who installs the package has no other. */
const types = defineConfig({
  entry: { index: 'src/index.ts' },
  format: 'esm',
  platform: 'node',
  fixedExtension: false,
  clean: false,
  logLevel: 'error',
  dts: { emitDtsOnly: true, generator: 'tsgo' },
  plugins: [leanPackages, withoutJsonSchema],
  inputOptions: {
    checks: { pluginTimings: false },
    // Translations of a package's messages are declared in a form that can't be joined, and nothing of ours names them.
    onLog(level, log, tell) {
      if (!log.message.includes('CommonJS dts')) tell(level, log);
    },
  },
  deps: { alwaysBundle: [/.*/], onlyBundle: false },
});

export default [pieces, main, types];
