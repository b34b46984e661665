import { fileURLToPath } from 'node:url';
import { isRecord, recordIn, textIn } from '../../../core/json.ts';
import { byType, type CliDefinition, type CliEvent, detailOf, messageIn, usageFrom } from './cli.ts';

/** Google's Gemini CLI. It reads `@path` anywhere in a prompt, and a slash at its beginning as a command. */
export const gemini: CliDefinition = {
  name: 'gemini',
  title: 'Gemini CLI',
  window: 1_000_000,
  command: ({ model, session, mayWrite }, extra) => [
    ...['--output-format', 'stream-json'],
    ...approval(mayWrite, extra),
    ...(model === undefined ? [] : ['--model', model]),
    ...(session === undefined ? [] : ['--resume', session]),
    ...extra,
  ],
  widening: ['--yolo', '-y', '--approval-mode=', '--allowed-tools=', '--skip-trust', '--policy=', '--admin-policy='],
  short: { '-m': '--model' },
  promptBy: 'stdin',
  parser: 'gemini_json',
  read: event => (event.type === undefined ? whole(event) : eventOf(event)),
  env: ['GEMINI_*', 'GOOGLE_*'],
  set: { NO_BROWSER: 'true' },
  login:
    /set an Auth method|Invalid auth method|GEMINI_API_KEY environment variable not found|API key not valid|API_KEY_INVALID|UNAUTHENTICATED|Please (?:log|sign) ?in|waiting for auth|enter the authorization code/i,
  loginHint: 'Run "gemini" once in a terminal and log in, or set GEMINI_API_KEY in the environment of this server.',
  refusals: [
    {
      says: /not running in a trusted directory/i,
      class: 'untrusted_folder',
      hint: 'Gemini CLI works only in directories that its user trusts: run "gemini" there once and trust it, or set GEMINI_CLI_TRUST_WORKSPACE=true in the environment of this server.',
    },
  ],
};

const policy = fileURLToPath(new URL('./gemini-policy.toml', import.meta.url));

/**
 * It takes one word on approvals only; where it may write, the operator's counts. The policy keeps it in its mode; to read, it replaces
 * those that the user has.
 */
function approval(mayWrite: boolean, extra: readonly string[]): string[] {
  if (!mayWrite) return ['--approval-mode', 'plan', '--policy', policy];
  const isSet = extra.some(arg => /^(?:--yolo|-y|--approval-mode)(?:=|$)/.test(arg));
  return isSet ? [] : ['--approval-mode', 'auto_edit', '--admin-policy', policy];
}

/** Events of `stream-json`. */
const eventOf = byType({
  init: event => [
    { type: 'session', id: textIn(event.session_id) },
    { type: 'model', name: textIn(event.model) },
  ],
  message: ({ role, content }) => (role === 'assistant' ? [{ type: 'text', text: textIn(content) }] : []),
  tool_use: ({ name: own, tool_name: name = own, tool_id: id, parameters }) => [
    { type: 'tool_use', name: textIn(name), id: textIn(id), detail: detailOf(parameters) },
  ],
  tool_result: ({ tool_id: id, status, output, error }) => [
    { type: 'tool_result', id: textIn(id), ok: status !== 'error', detail: detailOf(error ?? output) },
  ],
  error: event => [{ type: event.severity === 'warning' ? 'warning' : 'error', message: messageIn(event) }],
  result: ({ stats, error, status }) => [
    ...statsOf(stats),
    { type: 'error', message: messageIn(error) },
    { type: 'end', ok: status !== 'error' },
  ],
});

/** The one document of `json`. */
function whole({ session_id: session, response, stats, error }: Record<string, unknown>): CliEvent[] {
  if (response === undefined && error === undefined) return [];
  return [
    { type: 'session', id: textIn(session) },
    { type: 'final', text: textIn(response) },
    ...statsOf(stats),
    { type: 'error', message: messageIn(error) },
  ];
}

/** `stream-json` sums the tokens up, `json` tells them by model. */
function statsOf(stats: unknown): CliEvent[] {
  if (!isRecord(stats)) return [];
  const [[name = '', first] = []] = Object.entries(recordIn(stats.models));
  const model: CliEvent = { type: 'model', name };
  if (stats.input_tokens !== undefined) {
    const names = { input: 'input_tokens', output: 'output_tokens', cacheRead: 'cached' };
    return [model, { type: 'usage', usage: usageFrom(stats, names) }];
  }
  if (!isRecord(first) || !isRecord(first.tokens)) return [model];
  const names = { input: 'prompt', output: 'candidates', reasoning: 'thoughts', cacheRead: 'cached' };
  const usage = usageFrom(first.tokens, names);
  return [model, { type: 'usage', usage: { ...usage, output: usage.output + usage.reasoning } }];
}
