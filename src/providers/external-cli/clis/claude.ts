import { isRecord, recordIn, recordsIn, textIn, textsIn } from '../../../core/json.ts';
import { byType, type CliDefinition, type CliEvent, detailOf, messageIn, usageFrom } from './cli.ts';

/** What it may use while it only reads: others write, run or schedule something, also where a later version adds them. */
const readingTools = 'Read,Glob,Grep,LS,NotebookRead,WebFetch,WebSearch,TodoWrite';

/** Anthropic's Claude Code. In print mode it asks nobody whether it trusts a folder, so that only the user's settings count. */
export const claude: CliDefinition = {
  name: 'claude',
  title: 'Claude Code',
  window: 200_000,
  command: ({ model, session, mayWrite }, extra) => [
    ...['--print', '--output-format', 'stream-json', '--verbose', '--setting-sources', 'user', '--strict-mcp-config'],
    ...(mayWrite ? ['--permission-mode', 'acceptEdits'] : ['--tools', readingTools]),
    ...(model === undefined ? [] : ['--model', model]),
    ...(session === undefined ? [] : ['--resume', session]),
    ...extra,
  ],
  widening: [
    ...['--dangerously-skip-permissions', '--allow-dangerously-skip-permissions', '--permission-mode='],
    ...['--allowedTools=', '--allowed-tools=', '--tools='],
    ...['--setting-sources=', '--mcp-config=', '--add-dir='],
  ],
  promptBy: 'stdin',
  parser: 'claude_json',
  // Events of `stream-json`, which are also what `json` tells, as one object or as a list.
  read: byType({
    system: ({ subtype, session_id: session, model }) =>
      subtype === 'init'
        ? [
            { type: 'session', id: textIn(session) },
            { type: 'model', name: textIn(model) },
          ]
        : [],
    assistant: ({ message }) => blocksOf(message).flatMap(said),
    user: ({ message }) => blocksOf(message).flatMap(done),
    result,
  }),
  env: ['ANTHROPIC_*', 'CLAUDE_CODE_*', 'CLAUDE_CONFIG_DIR'],
  set: { DISABLE_AUTOUPDATER: '1' },
  login:
    /Invalid API key|Please run \/login|Not logged in|authentication_error|OAuth token (?:has expired|revoked)|setup-token/i,
  loginHint: 'Run "claude" once in a terminal and log in, or set ANTHROPIC_API_KEY in the environment of this server.',
};

const blocksOf = (message: unknown): Record<string, unknown>[] => recordsIn(recordIn(message).content);

/** What it says on the way is narration: the answer is its `result`. */
function said(block: Record<string, unknown>): CliEvent[] {
  if (block.type === 'text') return [{ type: 'note', text: textIn(block.text) }];
  if (block.type !== 'tool_use') return [];
  return [{ type: 'tool_use', name: textIn(block.name), id: textIn(block.id), detail: detailOf(block.input) }];
}

function done(block: Record<string, unknown>): CliEvent[] {
  if (block.type !== 'tool_result') return [];
  const ok = block.is_error !== true;
  return [{ type: 'tool_result', id: textIn(block.tool_use_id), ok, detail: detailOf(block.content) }];
}

function result(event: Record<string, unknown>): CliEvent[] {
  const { session_id: session, is_error: failed, subtype } = event;
  const text = typeof event.result === 'string' ? event.result : textsIn(event.result).join('\n');
  const why = text || messageIn(event) || textIn(subtype);
  return [
    { type: 'session', id: textIn(session) },
    failed === true ? { type: 'error', message: why } : { type: 'final', text },
    ...paidFor(event),
    { type: 'end', ok: failed !== true },
  ];
}

const names = {
  input: 'input_tokens',
  output: 'output_tokens',
  cacheRead: 'cache_read_input_tokens',
  cacheWrite: 'cache_creation_input_tokens',
};

const namesByModel = {
  input: 'inputTokens',
  output: 'outputTokens',
  cacheRead: 'cacheReadInputTokens',
  cacheWrite: 'cacheCreationInputTokens',
};

/** What is new in a result: `total_cost_usd` is of the whole session where the version tells what came since the last one, by model. */
function paidFor({ model_usage_since_last_result: fresh, usage, total_cost_usd: usd }: Record<string, unknown>) {
  if (!isRecord(fresh)) return paid(usage, usd, names);
  return recordsIn(Object.values(fresh)).flatMap(each => paid(each, each.costUSD, namesByModel));
}

function paid(counts: unknown, usd: unknown, by: typeof names): CliEvent[] {
  const cost: CliEvent[] = typeof usd === 'number' && usd >= 0 ? [{ type: 'cost', usd }] : [];
  if (!isRecord(counts)) return cost;
  const usage = usageFrom(counts, by);
  // What was cached is not among the vendor's input tokens; ours count all that was sent.
  return [{ type: 'usage', usage: { ...usage, input: usage.input + usage.cacheRead + usage.cacheWrite } }, ...cost];
}
