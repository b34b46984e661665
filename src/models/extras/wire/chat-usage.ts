import type { LanguageModelV4Usage } from '@ai-sdk/provider';

interface ToldUsage {
  prompt_tokens?: number | null;
  completion_tokens?: number | null;
  prompt_tokens_details?: { cached_tokens?: number | null; cache_write_tokens?: unknown } | null;
  completion_tokens_details?: { reasoning_tokens?: number | null } | null;
  /** Where older models of Moonshot tell what the cache held. */
  [key: string]: unknown;
}

/**
 * Tokens as servers of OpenAI's chat tell them, with what the package leaves out: those written to the cache, which newer models
 * charge more for, and cached ones that stand beside the others instead of in the details.
 */
export function chatUsage(usage: ToldUsage | null | undefined): LanguageModelV4Usage {
  const input = usage?.prompt_tokens ?? undefined;
  const output = usage?.completion_tokens ?? undefined;
  const beside = typeof usage?.cached_tokens === 'number' ? usage.cached_tokens : 0;
  const cacheRead = usage?.prompt_tokens_details?.cached_tokens ?? beside;
  const told = usage?.prompt_tokens_details?.cache_write_tokens;
  const cacheWrite = typeof told === 'number' ? told : 0;
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens ?? 0;
  return {
    inputTokens: {
      total: input,
      noCache: input === undefined ? undefined : Math.max(0, input - cacheRead - cacheWrite),
      cacheRead: input === undefined ? undefined : cacheRead,
      cacheWrite: input === undefined ? undefined : cacheWrite,
    },
    outputTokens: {
      total: output,
      text: output === undefined ? undefined : Math.max(0, output - reasoning),
      reasoning: output === undefined ? undefined : reasoning,
    },
  };
}
