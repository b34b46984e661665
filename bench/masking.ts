import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createMask } from '../src/observability/secret-masking.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { figure, type Table, times } from './measure/table.ts';

const roundCount = 3;
const enough = 10_000_000;
const packages = fileURLToPath(new URL('../node_modules/', import.meta.url));

/** How fast secrets are looked for in code, and how many are found in code that others published; next to another checkout. */
export async function masking(): Promise<Table> {
  const texts = codeOf(packages);
  const size = texts.reduce((sum, text) => sum + text.length, 0);
  const baseline = process.env.BENCH_BASELINE;
  const contenders = {
    'this checkout': async () => measure(texts, size, createMask),
    ...(baseline !== undefined && { BENCH_BASELINE: async () => measure(texts, size, await makerOf(baseline)) }),
  };
  const rounds = await inRounds(roundCount, contenders);
  const names = Object.keys(contenders);
  const last = names.at(-1) ?? '';
  const rows = names.map(name => [
    name,
    figure(typical(rounds, name, 'mbPerSecond'), 1),
    times(ratio(rounds, 'mbPerSecond', name, last)),
    figure(typical(rounds, name, 'finds'), 0),
  ]);
  return {
    title: `masking: ${texts.length} files of node_modules, ${figure(size / 1e6)} MB (${roundCount} rounds)`,
    columns: ['what', 'MB/s', 'to the last', 'finds'],
    rows,
  };
}

async function makerOf(checkout: string): Promise<typeof createMask> {
  const path = join(checkout, 'src/observability/secret-masking.ts');
  return (await import(pathToFileURL(path).href)).createMask;
}

function measure(texts: readonly string[], size: number, make: typeof createMask): Figures {
  const { maskSync } = make({ secret: 'pepper', keys: [] });
  let finds = 0;
  const before = process.cpuUsage();
  for (const text of texts) finds += maskSync(text, 'bench').places?.length ?? 0;
  const { user, system } = process.cpuUsage(before);
  return { mbPerSecond: size / (user + system), finds };
}

function codeOf(root: string): string[] {
  const texts: string[] = [];
  let size = 0;
  const add = (folder: string) => {
    const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      if (size > enough) return;
      const path = join(folder, entry.name);
      if (entry.isDirectory()) add(path);
      else if (entry.isFile() && /\.(?:[cm]?[jt]s|json|md|ya?ml|css|html)$/.test(entry.name)) {
        const text = readFileSync(path, 'utf8');
        if (text.length > 1_000_000) continue;
        texts.push(text);
        size += text.length;
      }
    }
  };
  add(root);
  return texts;
}
