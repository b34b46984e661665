import { isRecord, numberIn, recordIn, textIn } from '../../../core/json.ts';
import { byType, type CliDefinition, type CliEvent, detailOf, messageIn, usageFrom } from './cli.ts';

/** OpenAI's Codex CLI. Its `exec` never asks for approval, and takes a prompt as it is. */
export const codex: CliDefinition = {
  name: 'codex',
  title: 'Codex CLI',
  window: 270_000,
  command: ({ model, session, mayWrite }, extra) => [
    'exec',
    ...(session === undefined ? [] : ['resume', session]),
    ...['--json', '--skip-git-repo-check', '-c'],
    `sandbox_mode="${mayWrite ? 'workspace-write' : 'read-only'}"`,
    ...(model === undefined ? [] : ['--model', model]),
    ...extra,
    '-',
  ],
  widening: [
    ...['--dangerously-bypass-approvals-and-sandbox', '--yolo', '--dangerously-bypass-hook-trust', '--full-auto'],
    ...['--approve-for-me', '--trust', '--sandbox=', '-s=', '--add-dir='],
  ],
  short: { '-m': '--model' },
  promptBy: 'stdin',
  parser: 'codex_jsonl',
  read: byType({
    'thread.started': event => [{ type: 'session', id: textIn(event.thread_id) }],
    'item.started': ({ item }) => itemOf(recordIn(item), false),
    'item.completed': ({ item }) => itemOf(recordIn(item), true),
    'turn.completed': event => [...usageOf(event.usage), { type: 'end', ok: true }],
    'turn.failed': event => [
      { type: 'error', message: messageIn(event.error) },
      { type: 'end', ok: false },
    ],
    error: event => [{ type: 'error', message: messageIn(event) }],
  }),
  plainAt: true,
  env: ['OPENAI_*', 'CODEX_*'],
  login: /401 Unauthorized|Not logged in|codex login|Missing bearer|invalid_api_key|Missing environment variable/i,
  loginHint: 'Run "codex login" once in a terminal, or set CODEX_API_KEY in the environment of this server.',
};

function usageOf(usage: unknown): CliEvent[] {
  if (!isRecord(usage)) return [];
  const names = {
    input: 'input_tokens',
    output: 'output_tokens',
    reasoning: 'reasoning_output_tokens',
    cacheRead: 'cached_input_tokens',
    cacheWrite: 'cache_write_input_tokens',
  };
  // A resumed session tells what all of it used.
  return [{ type: 'usage', usage: usageFrom(usage, names), ofSession: true }];
}

/** Messages, thoughts and errors are told when they are complete; tools when they begin and when they end. */
function itemOf(item: Record<string, unknown>, completed: boolean): CliEvent[] {
  const { type } = item;
  if (type === 'agent_message') return completed ? [{ type: 'text', text: textIn(item.text), block: true }] : [];
  if (type === 'reasoning') return completed ? [{ type: 'note', text: textIn(item.text) }] : [];
  if (type === 'error') return completed ? [{ type: 'warning', message: messageIn(item) }] : [];
  if (typeof type !== 'string' || type === 'todo_list') return [];
  const id = textIn(item.id);
  const name = textIn(item.tool) || type;
  const asked = item.command ?? item.arguments ?? item.query ?? item.changes;
  if (!completed) return [{ type: 'tool_use', name, id, detail: detailOf(asked) }];
  const failed = item.status === 'failed' || item.status === 'declined' || numberIn(item.exit_code) !== 0;
  const outcome = item.aggregated_output ?? item.result ?? item.error ?? item.changes;
  return [{ type: 'tool_result', name, id, ok: !failed, detail: detailOf(outcome) }];
}
