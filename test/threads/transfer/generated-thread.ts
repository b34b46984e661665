import type { FileRecord } from '../../../src/core/file.ts';
import { type ExchangeId, exchangeId, type Sha256, threadId } from '../../../src/core/ids.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import type { Random } from '../../../src/core/ports.ts';
import type { ExchangeStatus, ThreadHead, Turn } from '../../../src/core/thread.ts';
import type { Store } from '../../../src/storage/store.ts';
import { hashOf, hour, start } from '../../contracts/store-fixtures.ts';

const pieces = [
  'const a = 1;\n',
  '```ts\nlet x;\n```\n',
  'Zürich 東京 🦜 ',
  '\u0000\u001b[31m',
  '</script><script>alert(1)</script>',
  '"quoted" \\ \u2028 ',
  '   trailing   \n\n',
  '{"kind":"end","sum":"00"}\n',
  '__proto__ ',
  '=== END FILE ===\r\n',
];

/** A thread of any shape, as stores hold it: long and short, with files, images, summaries and states. */
export async function generatedThread(store: Store, random: Random): Promise<ThreadHead> {
  const below = (limit: number) => Math.floor(random.fraction() * limit);
  const maybe = <Value>(value: Value) => (random.fraction() < 0.5 ? value : undefined);
  const text = () => Array.from({ length: below(12) }, () => pieces[below(pieces.length)]).join('');
  const base64 = () => Buffer.from(text() || 'x').toString('base64');
  const head: ThreadHead = {
    id: threadId(random.uuid()),
    owner: 'local',
    workspace: '/home/ann/project',
    toolName: 'chat',
    title: text().slice(0, 80),
    createdAt: start,
    updatedAt: start,
    expiresAt: start + 720 * hour,
    initialContext: { prompt: text(), '10': 1, deep: [[text()], JSON.parse('{"__proto__":{"polluted":1}}')] },
    totals: { tokens: 0, costUsd: 0 },
    seq: 0,
  };
  await store.create(head);
  let seq = 0;
  for (let left = below(9); left > 0; left--) {
    const exchange = exchangeId(random.uuid());
    const turns: Turn[] = [];
    const blobs: { sha256: Sha256; text: string }[] = [];
    const keep = (content: string) => {
      const sha256 = hashOf(content);
      blobs.push({ sha256, text: content });
      return sha256;
    };
    const file = (): FileRecord => {
      const form = (['full', 'range', 'diff', 'deleted', 'unchanged', 'changed'] as const)[below(6)] ?? 'full';
      const shows = form === 'full' || form === 'range' || form === 'diff';
      return {
        path: `/home/ann/project/${text()}`.replaceAll('\0', ''),
        form,
        size: below(10_000),
        mtimeMs: start + random.fraction(),
        lines: below(100),
        sha256: hashOf(text()),
        ...(shows && { base: keep(text()) }),
        ...(form === 'diff' && { shown: keep(text()) }),
        ...(form === 'range' && { range: { from: 1, to: 1 + below(9) } }),
      };
    };
    for (let count = 1 + below(3); count > 0; count--) {
      const answers = turns.length > 0;
      seq++;
      turns.push({
        seq,
        role: answers ? 'assistant' : 'user',
        content: text(),
        timestamp: start + seq,
        exchange: exchange satisfies ExchangeId,
        toolName: 'chat',
        ...(answers && {
          modelProvider: 'openai',
          modelName: 'gpt-5.2',
          modelMetadata: {
            requested: maybe('gpt'),
            effort: maybe('high'),
            finishReason: 'stop',
            usage: { input: below(9999), output: below(99), reasoning: 0, cacheRead: 0, cacheWrite: 0 },
            costUsd: maybe(random.fraction()),
            latencyMs: below(999),
            toolCalls: maybe([
              { name: 'write_file', args: '{}', outcome: 'refused' as const, approval: 'refuse', reason: 'no' },
            ]),
          },
        }),
        files: Array.from({ length: below(3) }, file),
        images: Array.from({ length: below(2) }, () => {
          const blob = keep(base64());
          return { source: 'data:', mediaType: 'image/png', blob };
        }),
        citations: answers ? [{ title: text(), url: 'https://a.example/?q=<b>', provider: 'openai' }] : [],
        tokens: below(500),
      });
    }
    const status = (['done', 'done', 'failed', 'interrupted'] satisfies ExchangeStatus[])[below(4)] ?? 'done';
    const state: JsonObject = { lastStep: below(4), findings: [text()] };
    await store.commit(head.id, {
      baseSeq: seq - turns.length,
      turns,
      blobs,
      exchange: { id: exchange, status },
      ...(below(3) === 0 && {
        compaction: {
          window: 32_000,
          upToSeq: seq - 1,
          summary: text(),
          trims: [{ seq, chars: 5 }, { seq }],
          createdAt: start,
        },
      }),
      ...(below(3) === 0 && { workflow: { tool: ['debug', 'analyze', 'codereview'][below(3)] ?? 'debug', state } }),
      updatedAt: start + seq,
      expiresAt: start + 720 * hour,
      tokens: below(1_000),
      costUsd: random.fraction(),
    });
  }
  const found = await store.head(head.id, start);
  if (found.state !== 'live') throw new Error('it was just made');
  return found.value;
}
