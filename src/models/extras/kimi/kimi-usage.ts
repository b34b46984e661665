import type { LanguageModelV4Usage } from '@ai-sdk/provider';

interface ToldUsage {
  prompt_tokens?: number | null;
  completion_tokens?: number | null;
  prompt_tokens_details?: { cached_tokens?: number | null } | null;
  completion_tokens_details?: { reasoning_tokens?: number | null } | null;
  /** Where older models tell what the cache held. */
  [key: string]: unknown;
}

/** Tokens as Moonshot tells them: the cached ones stand in the details, or beside the others. */
export function kimiUsage(usage: ToldUsage | null | undefined): LanguageModelV4Usage {
  const input = usage?.prompt_tokens ?? undefined;
  const output = usage?.completion_tokens ?? undefined;
  const beside = typeof usage?.cached_tokens === 'number' ? usage.cached_tokens : 0;
  const cacheRead = usage?.prompt_tokens_details?.cached_tokens ?? beside;
  const reasoning = usage?.completion_tokens_details?.reasoning_tokens ?? 0;
  return {
    inputTokens: {
      total: input,
      noCache: input === undefined ? undefined : Math.max(0, input - cacheRead),
      cacheRead: input === undefined ? undefined : cacheRead,
      cacheWrite: undefined,
    },
    outputTokens: {
      total: output,
      text: output === undefined ? undefined : Math.max(0, output - reasoning),
      reasoning: output === undefined ? undefined : reasoning,
    },
  };
}
