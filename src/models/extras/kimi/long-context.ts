/** From this many tokens on, a prompt is one for models that are made for long ones. */
const longContextTokens = 128_000;

/** Whether a prompt of so many tokens is pinned to Kimi's long-context family, where it is configured. */
export function isLongContext(tokens: number): boolean {
  return tokens > longContextTokens;
}
