/** What of one result a host passes on to its model unchanged. */
export interface PageSize {
  /** UTF-8 bytes of all text blocks together; a host that counts characters takes no fewer of them. */
  bytes: number;
  lines: number;
}

interface ClientFacts extends Partial<PageSize> {
  /** Gives each word after a slash command to the next argument of the prompt, and drops the words that are left. */
  splitsRequests?: true;
}

const usual: PageSize = { bytes: 40_000, lines: 2_000 };

/** Clients by the beginning of the name that they give; each figure stays below the limit that its source gives. */
const clients: readonly (readonly [name: RegExp, facts: ClientFacts])[] = [
  // 50,000 characters, then a file; 25,000 tokens (MAX_MCP_OUTPUT_TOKENS): code.claude.com/docs/en/mcp, October 2026. Words:
  // anthropics/claude-code issues 14210 and 70284; what was typed reaches its model all the same, beside the prompt.
  [/^claude[ -]?code/i, { bytes: 30_000, splitsRequests: true }],
  // Above 10,000 bytes the middle is cut: openai/codex issue 5913.
  [/^codex/i, { bytes: 9_000 }],
  // 40,000 characters: google-gemini/gemini-cli pull request 18446.
  [/^gemini[ -]?cli/i, { bytes: 36_000 }],
  // 25,000 characters or 1,000 lines: QwenLM/qwen-code issue 2439.
  [/^qwen/i, { bytes: 22_000, lines: 900 }],
  // 50 KB or 2,000 lines, then a file: anomalyco/opencode issue 22565.
  [/^opencode/i, { bytes: 40_000, lines: 1_900 }],
  // 30 KB, then a file and its first 500 characters: github/copilot-cli issue 1732, github/copilot-sdk issue 1091.
  [/copilot/i, { bytes: 27_000 }],
];

function factsOf(client: string | undefined): ClientFacts {
  return clients.find(([name]) => name.test(client ?? ''))?.[1] ?? {};
}

/** Claude Code cuts the middle of longer errors: code.claude.com/docs/en/mcp. */
const errorBytes = 10_000;

/** No text that models read has fewer bytes than this for a token. */
const bytesPerToken = 2;

/** How much of a reply goes into one result. `maxTokens`: the most tokens that the operator allows. */
export function pageSizeOf(client: string | undefined, maxTokens: number | undefined, isError: boolean): PageSize {
  const size = { ...usual, ...factsOf(client) };
  const allowed = (maxTokens ?? Number.POSITIVE_INFINITY) * bytesPerToken;
  return { lines: size.lines, bytes: Math.min(size.bytes, allowed, isError ? errorBytes : size.bytes) };
}

/** Whether a prompt's arguments would get one word each of what was typed after it. */
export function splitsRequests(client: string | undefined): boolean {
  return factsOf(client).splitsRequests === true;
}
