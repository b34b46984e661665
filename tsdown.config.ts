import { defineConfig } from 'tsdown';

const grammars = ['typescript', 'tsx', 'javascript', 'python', 'go'];

export default defineConfig({
  entry: {
    main: 'src/main.ts',
    index: 'src/index.ts',
    'sqlite-writer': 'src/memory/stores/sqlite-writer.ts',
    'trace-worker': 'src/files/graph/trace-worker.ts',
  },
  format: 'esm',
  platform: 'node',
  target: 'node24',
  fixedExtension: false,
  minify: true,
  dts: false,
  // Its main file finds its parts by a require that no bundler can follow.
  alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  // The parser's loader uses eval for an extension mechanism that its builds without dynamic code never reach.
  inputOptions: { checks: { eval: false } },
  copy: [
    { from: 'node_modules/web-tree-sitter/web-tree-sitter.wasm', to: 'dist/grammars' },
    ...grammars.map(name => ({
      from: `node_modules/@vscode/tree-sitter-wasm/wasm/tree-sitter-${name}.wasm`,
      to: 'dist/grammars',
    })),
  ],
  deps: { alwaysBundle: [/.*/], onlyBundle: false },
});
