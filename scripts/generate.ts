import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { generatedFiles } from './generate/generated-files.ts';

const { values, positionals } = parseArgs({ options: { check: { type: 'boolean' } }, allowPositionals: true });
const root = positionals[0] ?? '.';

const files = await generatedFiles(root).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
const stale = [...files].filter(([path, text]) => {
  const file = join(root, path);
  return !existsSync(file) || !readFileSync(file).equals(Buffer.from(text));
});

if (values.check) {
  for (const [path] of stale) console.error(`${path} is stale: run "npm run generate" and commit what it writes`);
  if (stale.length > 0) process.exit(1);
  console.log(`generate: ${files.size} files are fresh`);
} else {
  for (const [path, text] of stale) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    console.log(`wrote ${path}`);
  }
  console.log(`generate: ${files.size} files, ${stale.length} written`);
}
