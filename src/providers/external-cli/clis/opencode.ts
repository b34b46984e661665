import { isRecord, numberIn, textIn } from '../../../core/json.ts';
import { type CliEvent, defineCli, detailOf, messageIn, usageFrom, when } from './cli.ts';

/** OpenCode. Its agent `plan` changes nothing; `build` is the one that writes. */
export const opencode = defineCli({
  name: 'opencode',
  title: 'OpenCode',
  executable: 'opencode',
  window: 128_000,
  command: ({ model, session, mayWrite }, extra) => [
    'run',
    '--format',
    'json',
    '--agent',
    mayWrite ? 'build' : 'plan',
    ...(model === undefined ? [] : ['--model', model]),
    ...(session === undefined ? [] : ['--session', session]),
    ...extra,
  ],
  widening: { '--auto': 0, '--agent': 1, '--dangerously-skip-permissions': 0 },
  promptBy: 'stdin',
  output: 'json',
  parser: 'opencode_jsonl',
  read,
  env: ['OPENCODE_*', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'GEMINI_API_KEY', 'OPENROUTER_API_KEY'],
  set: { OPENCODE_DISABLE_AUTOUPDATE: 'true' },
  login: /opencode auth login|ProviderAuthError|invalid api key|unauthorized|no credentials/i,
  loginHint: 'Run "opencode auth login" once in a terminal.',
});

/** Each line is an event with the part of a message that it is about. */
function read(event: Record<string, unknown>): CliEvent[] {
  const session = textIn(event.sessionID);
  const part = isRecord(event.part) ? event.part : {};
  return [...when(session, { type: 'session', id: session }), ...partOf(event, part)];
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
  const state = isRecord(part.state) ? part.state : {};
  const name = textIn(part.tool);
  const id = textIn(part.callID);
  return [
    { type: 'tool_use', name, id, detail: detailOf(state.input) },
    { type: 'tool_result', name, id, ok: state.status !== 'error', detail: detailOf(state.error ?? state.output) },
  ];
}

function stepOf({ tokens, cost }: Record<string, unknown>): CliEvent[] {
  const events: CliEvent[] = [];
  if (isRecord(tokens)) {
    const counted = usageFrom(tokens, { input: 'input', output: 'output', reasoning: 'reasoning' });
    const cache = isRecord(tokens.cache)
      ? usageFrom(tokens.cache, { cacheRead: 'read', cacheWrite: 'write' })
      : counted;
    const { cacheRead, cacheWrite } = cache;
    const input = counted.input + cacheRead + cacheWrite;
    const output = counted.output + counted.reasoning;
    events.push({ type: 'usage', usage: { ...counted, input, output, cacheRead, cacheWrite } });
  }
  if (numberIn(cost) > 0) events.push({ type: 'cost', usd: numberIn(cost) });
  return events;
}
