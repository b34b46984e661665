import { isRecord, numberIn, recordIn, textIn } from '../../../core/json.ts';
import { byType, type CliDefinition, type CliEvent, detailOf, messageIn, usageFrom } from './cli.ts';

const all = (tools: string, action: 'allow' | 'deny') =>
  Object.fromEntries(tools.split(' ').map(tool => [tool, action]));

/** What it may do while it only reads: its agent `plan` runs commands. Secret files are asked for, as by default. */
const readOnly = {
  '*': 'deny',
  read: { '*': 'allow', '*.env': 'deny', '*.env.*': 'deny', '*.env.example': 'allow' },
  ...all('glob grep list todowrite webfetch websearch skill', 'allow'),
  // Named, as those that the user allows would count otherwise.
  ...all('bash edit task external_directory', 'deny'),
};

/** OpenCode. Its agent `plan` edits nothing; `build` is the one that writes. Programs and settings of the project are left alone. */
export const opencode: CliDefinition = {
  name: 'opencode',
  title: 'OpenCode',
  window: 128_000,
  command: ({ model, session, mayWrite }, extra) => [
    ...['run', '--format', 'json', '--agent', mayWrite ? 'build' : 'plan'],
    ...(model === undefined ? [] : ['--model', model]),
    ...(session === undefined ? [] : ['--session', session]),
    ...extra,
  ],
  widening: ['--auto', '--agent=', '--dangerously-skip-permissions'],
  short: { '-m': '--model' },
  promptBy: 'stdin',
  parser: 'opencode_jsonl',
  read: event => [{ type: 'session', id: textIn(event.sessionID) }, ...partOf(event)],
  env: ['OPENCODE_*', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'GEMINI_API_KEY', 'OPENROUTER_API_KEY'],
  set: { OPENCODE_DISABLE_AUTOUPDATE: 'true', OPENCODE_DISABLE_PROJECT_CONFIG: 'true' },
  setToRead: { OPENCODE_PERMISSION: JSON.stringify(readOnly) },
  login: /opencode auth login|ProviderAuthError|invalid api key|unauthorized|no credentials/i,
  loginHint: 'Run "opencode auth login" once in a terminal.',
};

/** What a line says of the part of a message that it is about. */
const partOf = byType({
  text: ({ part }) => [{ type: 'text', text: textIn(recordIn(part).text), block: true }],
  reasoning: ({ part }) => [{ type: 'note', text: textIn(recordIn(part).text) }],
  tool_use: ({ part }) => toolOf(recordIn(part)),
  step_finish: ({ part }) => stepOf(recordIn(part)),
  error: ({ error }) => [{ type: 'error', message: messageIn(error) || textIn(error) }],
});

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
