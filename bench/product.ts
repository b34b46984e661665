import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { BenchFolder } from './measure/bench-folder.ts';
import type { Launch } from './measure/session.ts';

const program = fileURLToPath(new URL('../dist/main.js', import.meta.url));

/** The built product with a data folder of its own, asking the vendor at this address. */
export function product(folder: BenchFolder, vendorUrl?: string, more: Record<string, string> = {}): Launch {
  if (!existsSync(program)) throw new Error('dist/main.js is missing: run "npm run build" first');
  const vendor: Record<string, string> =
    vendorUrl === undefined ? {} : { OPENAI_API_KEY: 'test-key', OPENAI_BASE_URL: vendorUrl };
  const places = { POLYLOGUE_HOME: folder.fresh('data'), PROJECT_ROOT: folder.fresh('project') };
  return { program, env: { ...folder.env, ...places, ...vendor, ...more } };
}
