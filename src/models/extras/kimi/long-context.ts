import type { ModelInfo } from '../../../domain/model.ts';

/** From this many tokens on, a prompt is one for models that are made for long ones. */
const longContextTokens = 128_000;
/** The window of Kimi's long-context family: K2 from 0905 on, and all after it. */
const longContextWindow = 256_000;

/** Whether a prompt of so many tokens is pinned to Kimi's long-context family, where it is configured. */
export function isLongContext(tokens: number): boolean {
  return tokens > longContextTokens;
}

/** Whether a model belongs to Kimi's long-context family. */
export function isLongContextKimi({ provider, window }: Pick<ModelInfo, 'provider' | 'window'>): boolean {
  return provider === 'moonshot' && window >= longContextWindow;
}
