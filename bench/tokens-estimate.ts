import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { estimateTokens } from '../src/core/tokens.ts';
import { type Figures, inRounds, ratio, typical } from './measure/rounds.ts';
import { figure, type Table, times } from './measure/table.ts';

const roundCount = 9;
const source = fileURLToPath(new URL('../src/', import.meta.url));

/** How fast and how near the estimate of tokens is, on this repository's own source. */
export async function tokensEstimate(): Promise<Table> {
  const texts = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => readFileSync(join(source, name), 'utf8'));
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const contenders = {
    estimateTokens: async () => measure(texts, bytes, 8, text => estimateTokens(text)),
    'exact count (gpt-tokenizer, o200k)': async () => measure(texts, bytes, 1, text => countTokens(text)),
  };
  const rounds = await inRounds(roundCount, contenders);
  const [, exact = ''] = Object.keys(contenders);
  const rows = Object.keys(contenders).map(name => [
    name,
    figure(typical(rounds, name, 'mbPerSecond'), 1),
    times(ratio(rounds, 'mbPerSecond', name, exact)),
    figure(typical(rounds, name, 'tokens'), 0),
    times(ratio(rounds, 'tokens', name, exact)),
  ]);
  return {
    title: `tokens-estimate: ${texts.length} files of src/, ${figure(bytes / 1e6)} MB (${roundCount} rounds)`,
    columns: ['how', 'MB/s', 'to exact', 'tokens', 'to exact'],
    rows,
  };
}

function measure(texts: readonly string[], bytes: number, passes: number, count: (text: string) => number): Figures {
  let tokens = 0;
  const before = performance.now();
  for (let pass = 0; pass < passes; pass++) for (const text of texts) tokens += count(text);
  const seconds = (performance.now() - before) / 1_000;
  return { mbPerSecond: (bytes * passes) / 1e6 / seconds, tokens: tokens / passes };
}
