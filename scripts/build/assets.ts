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
