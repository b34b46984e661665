import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testProduct } from '../../support/product.ts';
import { seededRandom } from '../../support/random.ts';
import { tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

/** Texts of every kind that tokenizers treat differently. */
function textMaker(seed: number) {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random.fraction() * limit);
  const word = () => Array.from({ length: 2 + below(9) }, () => 'etaoinshrdlucmfw'[below(16)]).join('');
  const kinds: ((size: number) => string)[] = [
    size => Array.from({ length: size / 6 }, word).join(' '),
    size => Array.from({ length: size / 24 }, () => `  const ${word()} = ${word()}(${below(999)});`).join('\n'),
    size => Buffer.from(Array.from({ length: size * 0.7 }, () => below(256))).toString('base64'),
    size => Array.from({ length: size / 3 }, () => String.fromCodePoint(0x4e00 + below(8_000))).join(''),
    size => Array.from({ length: size / 7 }, () => below(1_000_000)).join(','),
    size => Array.from({ length: size }, () => '{}[]();:,.<>!?'[below(14)]).join(''),
  ];
  return { below, text: (size: number) => kinds[below(kinds.length)]!(Math.max(60, size)) };
}

const windows = [8_000, 200_000, 1_000_000];
const rounds = 2;

describe.each(windows)('with a window of %i tokens', window => {
  let vendor: FakeVendor;
  beforeAll(async () => {
    vendor = await startOpenAi({ window });
  });
  afterAll(() => vendor.close());

  it.each(Array.from({ length: rounds }, (_, round) => round + 1))(
    'no prompt exceeds it, whatever thread %i holds',
    async seed => {
      const { below, text } = textMaker(seed * 31 + window);
      const files: Record<string, string> = {};
      // No thread here fills a million tokens, so that larger texts would only take longer to count there.
      const scale = window > 500_000 ? 40_000 : Math.min(window, 120_000);
      for (let n = 0; n < 6; n++) files[`file${n}.txt`] = text(below(scale));
      const project = await tempProject(files);
      const polylogue = await testProduct({
        root: project.root,
        env: {
          CUSTOM_API_URL: vendor.url,
          CUSTOM_API_KEY: 'test-key',
          CUSTOM_MODEL_NAME: 'any',
          CUSTOM_CONTEXT_WINDOW: String(window),
          DEFAULT_MODEL: 'custom:any',
          MASK_SECRETS: 'off',
        },
      });
      try {
        let id: string | undefined;
        for (let turn = 0; turn < 8; turn++) {
          vendor.byDefault({ answer: text(below(scale / 2)) });
          const prompt = `Question ${turn}: ${text(below(Math.min(scale / 5, 20_000)))}`;
          const names = Object.keys(files).filter(() => below(3) === 0);
          const asked = () => vendor.requests.filter(request => request.dialect !== 'models').length;
          const seen = asked();
          const reply = await polylogue.call('chat', { prompt, absolute_file_paths: names, continuation_id: id });
          if (reply.error?.code === 'LIMIT') {
            expect(reply.error.data.window ?? reply.error.data.model_context_window).toBe(window);
            expect(asked()).toBe(seen);
            continue;
          }
          expect(reply.isError, JSON.stringify(reply.error)).toBe(false);
          id = reply.continuation_offer.continuation_id;
          const sent = vendor.requests.at(-1)!;
          const { budget } = reply.metadata;
          expect(sent.tokens + budget.answer).toBeLessThanOrEqual(window);
          expect(budget.used + budget.answer).toBeLessThanOrEqual(window);
          const all = sent.messages.map(message => message.text).join('\n');
          expect(all).toContain(`Question ${turn}: `);
          expect(all).toContain('=== WHAT TO DO NOW ===');
          expect(all).toContain('You are a senior engineer');
          const wide = window >= 300_000;
          const rest = window - budget.answer - (budget.used - budget.files - budget.history);
          expect(budget.history + budget.files).toBeLessThanOrEqual(rest);
          // Files that were left out for want of room were only left out when their guaranteed share was used.
          const leftOut =
            reply.metadata.files?.skipped?.filter((skip: { code: string }) => skip.code === 'over_budget') ?? [];
          // Beyond its share the thread has only what new files leave.
          if (leftOut.length > 0) expect(budget.history).toBeLessThanOrEqual(Math.floor(rest * (wide ? 0.4 : 0.5)));
          if (leftOut.length > 0 && budget.history > 0)
            expect(rest - budget.history).toBeGreaterThanOrEqual(Math.floor(rest * (wide ? 0.4 : 0.3)));
        }
        expect(vendor.violations).toEqual([]);
      } finally {
        await polylogue.close();
        await project.dispose();
      }
    },
  );
});
