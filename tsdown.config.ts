import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: { main: 'src/main.ts', index: 'src/index.ts', 'sqlite-writer': 'src/memory/stores/sqlite-writer.ts' },
  format: 'esm',
  platform: 'node',
  target: 'node24',
  fixedExtension: false,
  minify: true,
  dts: false,
  // Its main file finds its parts by a require that no bundler can follow.
  alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  deps: { alwaysBundle: [/.*/], onlyBundle: false },
});
