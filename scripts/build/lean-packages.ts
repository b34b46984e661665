import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { packVocabulary, type Token } from './vocabulary.ts';

/** Compressing takes seconds, and what is compressed changes with its package alone. */
const kept = join('node_modules', '.cache', 'polylogue');

const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };

function brotli(bytes: Buffer): Buffer {
  const file = join(kept, `${createHash('sha256').update(bytes).digest('hex')}.br`);
  if (existsSync(file)) return readFileSync(file);
  const packed = brotliCompressSync(bytes, { params });
  mkdirSync(kept, { recursive: true });
  writeFileSync(file, packed);
  return packed;
}

export interface Emits {
  emitFile(file: { type: 'asset'; fileName: string; source: Uint8Array | string }): void;
}

const languages = ['typescript', 'tsx', 'python', 'go'];

/** The parser and its grammars as compressed files; npm's own compression leaves them a third larger. */
export const grammars = {
  name: 'grammars',
  generateBundle(this: Emits) {
    const wasm = languages.map(name => `@vscode/tree-sitter-wasm/wasm/tree-sitter-${name}.wasm`);
    for (const file of ['web-tree-sitter/web-tree-sitter.wasm', ...wasm]) {
      const source = brotli(readFileSync(join('node_modules', file)));
      this.emitFile({ type: 'asset', fileName: `grammars/${basename(file)}.br`, source });
    }
  },
};

/** The tokenizer's vocabulary as a compressed file instead of 2 MB of JavaScript. */
export const vocabulary = {
  name: 'vocabulary',
  load(id: string) {
    if (!id.endsWith('/gpt-tokenizer/esm/bpeRanks/o200k_base.js')) return undefined;
    return `import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import { unpackVocabulary } from ${JSON.stringify(resolve('scripts/build/vocabulary.ts'))};
export default unpackVocabulary(brotliDecompressSync(readFileSync(new URL('./o200k.br', import.meta.url))));`;
  },
  async generateBundle(this: Emits) {
    const { default: tokens }: { default: readonly Token[] } = await import('gpt-tokenizer/bpeRanks/o200k_base');
    this.emitFile({ type: 'asset', fileName: 'o200k.br', source: brotli(packVocabulary(tokens)) });
  },
};

/** A part of a package's file that is replaced. The build fails where the package no longer has it. */
interface Cut {
  file: RegExp;
  from: string | RegExp;
  to: string;
}

/** Parts of packages that no call of ours reaches and no bundler leaves out by itself. */
const cuts: readonly Cut[] = [
  // What zod has beside its schemas: messages in other languages, and its insides under a second name.
  {
    file: /\/zod\/v4\/classic\/external\.(?:js|d\.cts)$/,
    from: /^export \* as locales from .*$|(?<=[{,] )(?:regexes|util), /gm,
    to: '',
  },
  { file: /\/zod\/v4\/classic\/external\.(?:js|d\.cts)$/, from: /(?<=as core from "..\/core\/)index/, to: 'schemas' },
  // Both packages of the protocol carry the same large validator; their small one needs no code made at run time.
  {
    file: /@modelcontextprotocol\/client\/dist\/shimsNode\.mjs$/,
    from: /^import .*$/m,
    to: 'import { CfWorkerJsonSchemaValidator as AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";',
  },
  {
    file: /@modelcontextprotocol\/server\/dist\/shimsNode\.mjs$/,
    from: /^import .*ajvProvider.*$/m,
    to: 'import { CfWorkerJsonSchemaValidator as AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";',
  },
  // The package of MiniMax wants one class of Anthropic's, of which it would bring a second copy.
  {
    file: /@ai-sdk\/anthropic\/dist\/index\.js$/,
    from: /^export \{ VERSION, /m,
    to: 'export { AnthropicLanguageModel, VERSION, ',
  },
  // Of what vendors' packages make, only the models that chat are asked for: a class that nobody makes is left out.
  {
    file: /\/(?:@ai-sdk|@openrouter)\/(?:openai|google|xai|anthropic|deepseek|groq|minimax|openai-compatible|ai-sdk-provider)\/dist\/index\.js$/,
    from: /\bnew (?!(?:\w*(?:Chat|Responses)|Google|Anthropic)LanguageModel\b)\w+(?:Model|ModelLive|Files|Skills|Batch)\(/g,
    to: 'new Error(',
  },
  // One connection to one server is all that is made, and commands are sent by their names.
  {
    file: /@redis\/client\/dist\/index\.js$/,
    from: /^[\s\S]*$/,
    to: "exports.createClient = require('./lib/client').default.create;",
  },
  {
    file: /@redis\/client\/dist\/lib\/commands\/index\.js$/,
    from: /^[\s\S]*$/,
    to: `const commands = Object.fromEntries(
      [['AUTH', require('./AUTH')], ['CLIENT_SETNAME', require('./CLIENT_SETNAME')], ['READONLY', require('./READONLY')]].map(
        ([name, module]) => [name, module.default],
      ),
    );
    Object.defineProperty(exports, '__esModule', { value: true });
    exports.default = commands;
    exports.NON_STICKY_COMMANDS = commands;`,
  },
  {
    file: /@redis\/client\/dist\/lib\/command-metadata\/command-metadata-data\.js$/,
    from: /^[\s\S]*$/,
    to: 'exports.COMMAND_METADATA = {};',
  },
  // Its own measurements are begun by nobody.
  {
    file: /@redis\/client\/dist\/lib\/opentelemetry\/index\.js$/,
    from: /^[\s\S]*$/,
    to: "exports.ClientRegistry = require('./client-registry').ClientRegistry;",
  },
];

interface Resolves {
  resolve(source: string, importer?: string): Promise<{ id: string } | null>;
}

export const leanPackages = {
  name: 'lean-packages',
  resolveId(this: Resolves, source: string, importer?: string) {
    return source === '@ai-sdk/anthropic/internal' ? this.resolve('@ai-sdk/anthropic', importer) : undefined;
  },
  transform(code: string, id: string) {
    let lean = code;
    for (const { file, from, to } of cuts.filter(cut => cut.file.test(id))) {
      const without = lean.replace(from, () => to);
      if (without === lean) throw new Error(`${id} has another form than ${file} expects: look at its cut again.`);
      lean = without;
    }
    return lean === code ? undefined : lean;
  },
};
