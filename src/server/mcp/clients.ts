import type { RequestId, Server, ServerContext } from '@modelcontextprotocol/server';
import { CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { withTimeout } from '../../core/concurrency.ts';
import { isRecord, recordIn } from '../../core/json.ts';
import type { Clock } from '../../core/ports.ts';
import type { PromptListing, ToolHost } from '../../core/tool-host.ts';

/** What of one result a host passes on to its model unchanged. */
export interface PageSize {
  /** UTF-8 bytes of all text blocks together; a host that counts characters takes no fewer of them. */
  bytes: number;
  lines: number;
}

interface ClientFacts extends Partial<PageSize> {
  /**
   * Which arguments of a prompt take all words after a slash command together. `none`: each word would be the next argument, and
   * what was typed reaches the model beside a prompt without any. `one`: so it is with more than one. `required`: only such a one.
   */
  takesWords?: 'none' | 'one' | 'required';
}

const usual: PageSize = { bytes: 40_000, lines: 2_000 };

/** Clients by the beginning of the name that they give; each figure stays below the limit that its source gives. */
const clients: readonly (readonly [name: RegExp, facts: ClientFacts])[] = [
  // 50,000 characters, then a file; 25,000 tokens (MAX_MCP_OUTPUT_TOKENS): code.claude.com/docs/en/mcp, October 2026. Words:
  // anthropics/claude-code issues 14210 and 70284; what was typed reaches its model all the same, beside the prompt.
  [/^claude[ -]?code/i, { bytes: 30_000, takesWords: 'none' }],
  // Above 10,000 bytes the middle is cut: openai/codex issue 5913.
  [/^codex/i, { bytes: 9_000 }],
  // 40,000 characters: google-gemini/gemini-cli pull request 18446. Words: parseArgs of its McpPromptLoader, as in Qwen Code.
  [/^gemini[ -]?cli/i, { bytes: 36_000, takesWords: 'required' }],
  // 25,000 characters or 1,000 lines: QwenLM/qwen-code issue 2439.
  [/^qwen/i, { bytes: 22_000, lines: 900, takesWords: 'one' }],
  // 50 KB or 2,000 lines, then a file: anomalyco/opencode issue 22565. Words: what arrived in test/e2e/hosts.
  [/^opencode/i, { bytes: 40_000, lines: 1_900, takesWords: 'none' }],
  // 30 KB, then a file and its first 500 characters: github/copilot-cli issue 1732, github/copilot-sdk issue 1091.
  [/copilot/i, { bytes: 27_000 }],
];

const factsOf = (client: string | undefined): ClientFacts =>
  clients.find(([name]) => name.test(client ?? ''))?.[1] ?? {};

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

/** A prompt as a client is to know it, so that `request` gets all that was typed after it. */
export function promptFor(client: string | undefined, { arguments: all, ...prompt }: PromptListing) {
  const { takesWords } = factsOf(client);
  const isRequest = ({ name }: { name: string }) => name === 'request';
  const known = takesWords === 'none' ? [] : takesWords === 'one' ? all.filter(isRequest) : all;
  const needed = (each: PromptListing['arguments'][number]) => takesWords === 'required' && isRequest(each);
  return { ...prompt, arguments: known.map(each => ({ ...each, required: each.required || needed(each) })) };
}

/** What a client calls itself: 2026 ones say so with each request, 2025 ones when they connect. */
export function clientOf(server: Server, { mcpReq }: ServerContext): string | undefined {
  const { name } = recordIn(recordIn(mcpReq.envelope)[CLIENT_INFO_META_KEY]);
  return typeof name === 'string' ? name : server.getClientVersion()?.name;
}

/** What the calls of a connection use, and where they come from. */
export interface Project {
  host: ToolHost;
  principal: { owner: string; root: string };
}

/** How the directories that a 2025 client lists choose his project. */
export interface ListedRoots {
  /** What he may use of the product then; `addresses` are as he wrote them. */
  productOf(addresses: readonly string[]): Promise<{ host: ToolHost; root: string }>;
  clock: Pick<Clock, 'after'>;
}

/** The project of the client's call. Rejects for a client that is gone before it is known: nothing was begun for him. */
export type ProjectOf = (context: ServerContext) => Project | Promise<Project>;

/** A call waits for so long for the answer; one that comes later is for the calls after it. */
const patienceMs = 2_000;

/** Roots that are no directories of a machine may stand among them. */
const answerSchema = z.looseObject({ roots: z.array(z.looseObject({ uri: z.string() })) });

/** Asks a client for its roots with its first call, which has a stream for it, and when they changed. Until it tells, `fixed` holds. */
export function followRoots(server: Server, fixed: Project, { productOf, clock }: ListedRoots): ProjectOf {
  let current = fixed;
  let ready = false;
  let asked: Promise<void> | undefined;
  // Answers to earlier questions count for nothing once a later one is asked.
  let round = 0;

  async function ask(relatedRequestId: RequestId): Promise<void> {
    round += 1;
    const mine = round;
    try {
      const { roots } = await server.request({ method: 'roots/list' }, answerSchema, { relatedRequestId });
      const { host, root } = await productOf(roots.map(({ uri }) => uri));
      if (mine === round) current = { host, principal: { ...fixed.principal, root } };
    } catch {
      // A client that says nothing, or refuses, stays where he is.
    }
  }

  function forget(): void {
    asked = undefined;
  }

  server.oninitialized = () => {
    ready = true;
    // Whoever begins anew may be in another project.
    round += 1;
    current = fixed;
    forget();
  };
  server.setNotificationHandler('notifications/roots/list_changed', forget);
  return async ({ mcpReq }) => {
    if (!ready || server.getClientCapabilities()?.roots === undefined) return current;
    asked ??= withTimeout(clock, patienceMs, ask(mcpReq.id));
    await asked;
    mcpReq.signal.throwIfAborted();
    return current;
  };
}

/** What the client of this very request can do: 2026 clients say so with each request. */
export const declaredCapabilities = ({ mcpReq }: ServerContext): unknown =>
  recordIn(mcpReq.envelope)[CLIENT_CAPABILITIES_META_KEY];

/** Whether the client shows forms to its user; 2025 clients said so when they connected. */
export function canBeAsked(server: Server, context: ServerContext): boolean {
  const capabilities = declaredCapabilities(context) ?? server.getClientCapabilities();
  if (!isRecord(capabilities) || !isRecord(capabilities.elicitation)) return false;
  // Before there were addresses to visit, forms were all there was.
  return capabilities.elicitation.form !== undefined || capabilities.elicitation.url === undefined;
}
