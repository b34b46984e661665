import { isRecord, numberIn, recordIn, textIn } from '../../../core/json.ts';
import { type CliDefinition, type CliEvent, detailOf, messageIn, usageFrom } from './cli.ts';

/** OpenCode. Its agent `plan` changes nothing; `build` is the one that writes. */
export const opencode: CliDefinition = {
  name: 'opencode',
  title: 'OpenCode',
  executable: 'opencode',
  window: 128_000,
  command: ({ model, session, mayWrite }, extra) => [
    ...['run', '--format', 'json', '--agent', mayWrite ? 'build' : 'plan'],
    ...(model === undefined ? [] : ['--model', model]),
    ...(session === undefined ? [] : ['--session', session]),
    ...extra,
  ],
  widening: ['--auto', '--agent=', '--dangerously-skip-permissions'],
  promptBy: 'stdin',
  output: 'json',
  parser: 'opencode_jsonl',
  read,
  env: ['OPENCODE_*', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'GEMINI_API_KEY', 'OPENROUTER_API_KEY'],
  set: { OPENCODE_DISABLE_AUTOUPDATE: 'true' },
  login: /opencode auth login|ProviderAuthError|invalid api key|unauthorized|no credentials/i,
  loginHint: 'Run "opencode auth login" once in a terminal.',
};

/** Each line is an event with the part of a message that it is about. */
function read(event: Record<string, unknown>): CliEvent[] {
  return [{ type: 'session', id: textIn(event.sessionID) }, ...partOf(event, recordIn(event.part))];
}

function partOf(event: Record<string, unknown>, part: Record<string, unknown>): CliEvent[] {
  switch (event.type) {
    case 'text':
      return [{ type: 'text', text: textIn(part.text), block: true }];
    case 'reasoning':
      return [{ type: 'note', text: textIn(part.text) }];
    case 'tool_use':
      return toolOf(part);
    case 'step_finish':
      return stepOf(part);
    case 'error':
      return [{ type: 'error', message: messageIn(event.error) || textIn(event.error) }];
    default:
      return [];
  }
}

/** Told once the tool has ended. */
function toolOf(part: Record<string, unknown>): CliEvent[] {
  const state = recordIn(part.state);
  const name = textIn(part.tool);
  const id = textIn(part.callID);
  return [
    { type: 'tool_use', name, id, detail: detailOf(state.input) },
    { type: 'tool_result', name, id, ok: state.status !== 'error', detail: detailOf(state.error ?? state.output) },
  ];
}

function stepOf({ tokens, cost }: Record<string, unknown>): CliEvent[] {
  const paid: CliEvent[] = numberIn(cost) > 0 ? [{ type: 'cost', usd: numberIn(cost) }] : [];
  if (!isRecord(tokens)) return paid;
  const { input, output, reasoning } = usageFrom(tokens, { input: 'input', output: 'output', reasoning: 'reasoning' });
  const { cacheRead, cacheWrite } = usageFrom(recordIn(tokens.cache), { cacheRead: 'read', cacheWrite: 'write' });
  const sums = { input: input + cacheRead + cacheWrite, output: output + reasoning };
  return [{ type: 'usage', usage: { ...sums, reasoning, cacheRead, cacheWrite } }, ...paid];
}
