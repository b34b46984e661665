import type { LanguageModelV4Usage } from '@ai-sdk/provider';

/** The tokens of several requests that make one answer. */
export function addVendorUsage(
  before: LanguageModelV4Usage | undefined,
  more: LanguageModelV4Usage,
): LanguageModelV4Usage {
  if (!before) return more;
  const sum = (a: number | undefined, b: number | undefined) =>
    a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
  const { inputTokens: i, outputTokens: o } = before;
  const { inputTokens, outputTokens } = more;
  return {
    inputTokens: {
      total: sum(i.total, inputTokens.total),
      noCache: sum(i.noCache, inputTokens.noCache),
      cacheRead: sum(i.cacheRead, inputTokens.cacheRead),
      cacheWrite: sum(i.cacheWrite, inputTokens.cacheWrite),
    },
    outputTokens: {
      total: sum(o.total, outputTokens.total),
      text: sum(o.text, outputTokens.text),
      reasoning: sum(o.reasoning, outputTokens.reasoning),
    },
  };
}
