import type { Formula } from './moonshot-formula.ts';
import type { Refusal } from './refusal.ts';
import type { Reply } from './reply.ts';
import type { Frame, Wire } from './wire.ts';
import { recordOf, recordsOf, stringOf } from './wire-values.ts';

type Value = Record<string, unknown>;

/** `$web_search`: the model calls it, the caller hands its arguments back as they came. Or the platform's own, a function. */
export interface Searches {
  /** How often the model searches before it answers; default 0. */
  wanted: number;
  /** Tokens that each search announces. */
  announces: number;
  /** What the model says and thinks before it searches. */
  says: string;
  thinks: string;
  /** It calls the tool even when it was told not to. */
  stubborn: boolean;
  check(body: Value): Refusal | undefined;
  wire(body: Value, reply: Reply): Wire | undefined;
}

interface Call {
  id: string;
  arguments: string;
}

export function createSearches(formula: Formula): Searches {
  const calls = new Map<string, Call>();
  const self: Searches = {
    wanted: 0,
    announces: 500,
    says: '',
    thinks: '',
    stubborn: false,
    check: body => check(body, self, calls, formula),
    wire(body, reply) {
      const byFormula = formula.isDeclared(recordsOf(body.tools));
      const declared = byFormula || recordsOf(body.tools).some(tool => recordOf(tool.function).name === '$web_search');
      const done = recordsOf(body.messages).filter(message => message.role === 'tool').length;
      const may = body.tool_choice !== 'none' || self.stubborn;
      if (!declared || !may || done >= self.wanted) return undefined;
      if (byFormula) return callWire(reply, { ...formula.call(), type: 'function', name: 'web_search' }, self);
      const id = `$web_search:${calls.size}`;
      // Not in the order in which a program would write it: it must come back byte for byte.
      const text = `{"search_result": {"search_id":"s-${calls.size}"},  "usage":{"total_tokens":${self.announces}}}`;
      calls.set(id, { id, arguments: text });
      return callWire(reply, { id, arguments: text, type: 'builtin_function', name: '$web_search' }, self);
    },
  };
  return self;
}

function refusal(message: string): Refusal {
  const said = `Invalid request: ${message}`;
  return { status: 400, message: said, body: { error: { message: said, type: 'invalid_request_error' } } };
}

function check(body: Value, self: Searches, calls: ReadonlyMap<string, Call>, formula: Formula): Refusal | undefined {
  const tools = recordsOf(body.tools);
  for (const tool of tools) {
    const { name } = recordOf(tool.function);
    if (tool.type === 'builtin_function' && name !== '$web_search')
      return refusal(`unknown builtin function ${String(name)}`);
    if (tool.type !== 'builtin_function' && tool.type !== 'function') return refusal('unknown type of tool');
    if (tool.type === 'function' && stringOf(name).startsWith('$')) return refusal('function name is invalid');
  }
  if (body.tools != null && tools.length === 0) return refusal('tools must not be empty');
  if (body.tool_choice != null && tools.length === 0) return refusal('tool_choice is set but no tools are provided');
  const { model, thinking, tool_choice: choice } = body;
  const mayThink = !/^(moonshot-v1|kimi-k2-)/.test(stringOf(model)) && recordOf(thinking).type !== 'disabled';
  const isForced = choice === 'required' ? !/^kimi-k3/.test(stringOf(model)) : typeof choice === 'object';
  if (mayThink && isForced) return refusal('tool_choice is incompatible with thinking enabled');
  const problem = formula.problem(recordsOf(body.messages), tools);
  if (problem !== undefined) return refusal(problem);
  const searching = tools.some(tool => tool.type === 'builtin_function');
  if (searching && /^kimi-k2\.[5-7]|^kimi-k3/.test(stringOf(body.model)) && recordOf(body.thinking).type !== 'disabled')
    return refusal('$web_search is incompatible with thinking enabled');
  const thinks = /^kimi-k[23]/.test(stringOf(body.model)) && recordOf(body.thinking).type !== 'disabled';
  return checkConversation(recordsOf(body.messages), { searching, thinks }, self, calls);
}

function checkConversation(
  messages: Value[],
  { searching, thinks }: { searching: boolean; thinks: boolean },
  self: Searches,
  calls: ReadonlyMap<string, Call>,
): Refusal | undefined {
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  for (const [at, message] of messages.entries()) {
    if (message.role === 'tool') {
      const id = stringOf(message.tool_call_id);
      const before = messages.slice(0, at).findLast(({ role }) => role === 'assistant');
      const made = recordsOf(before?.tool_calls).find(call => call.id === id);
      if (!made) return refusal(`tool_call_id ${id} is not found`);
      if (!isOwn(made)) continue;
      if (message.name !== '$web_search' || message.content !== calls.get(id)?.arguments)
        return refusal('the arguments of $web_search must be returned as they are');
    }
    const made = recordsOf(message.tool_calls);
    for (const call of made) {
      if (!isOwn(call)) {
        if (thinks && at > asked && message.reasoning_content === undefined)
          return refusal('thinking is enabled but reasoning_content is missing in assistant tool call message');
        continue;
      }
      const known = calls.get(stringOf(call.id));
      const { name, arguments: given } = recordOf(call.function);
      if (!searching) return refusal('$web_search must be declared in every request');
      if (call.type !== 'builtin_function' || name !== '$web_search' || given !== known?.arguments)
        return refusal('the assistant message with tool_calls must be returned as it is');
      if ((message.content ?? '') !== self.says) return refusal('the assistant message must be returned as it is');
      if (self.thinks !== '' && message.reasoning_content !== self.thinks)
        return refusal('reasoning_content is missing in assistant tool call message');
    }
  }
  return undefined;
}

/** The vendor's own function, as against those of the caller. */
function isOwn(call: Value): boolean {
  return call.type === 'builtin_function' || stringOf(recordOf(call.function).name).startsWith('$');
}

function callWire(reply: Reply, call: Call & { type: string; name: string }, { says, thinks }: Searches): Wire {
  const common = { id: `chatcmpl-${reply.id}`, created: reply.created, model: reply.model };
  const chunk = (rest: Value): Frame => ({ data: { ...common, object: 'chat.completion.chunk', ...rest } });
  const delta = (content: Value, finish: string | null = null): Value => ({
    choices: [{ index: 0, delta: content, finish_reason: finish }],
  });
  const usage = { prompt_tokens: reply.usage.input, completion_tokens: 20, total_tokens: reply.usage.input + 20 };
  const half = Math.floor(call.arguments.length / 2);
  const started = { index: 0, id: call.id, type: call.type, function: { name: call.name, arguments: '' } };
  const piece = (text: string) => chunk(delta({ tool_calls: [{ index: 0, function: { arguments: text } }] }));
  return {
    open: () => [
      chunk(delta({ role: 'assistant', content: '' })),
      ...(thinks ? [chunk(delta({ reasoning_content: thinks }))] : []),
      ...(says ? [chunk(delta({ content: says }))] : []),
      chunk(delta({ tool_calls: [started] })),
      piece(call.arguments.slice(0, half)),
    ],
    // The reply of the step is not what the model says here.
    text: () => chunk(delta({ content: '' })),
    close: () => [
      piece(call.arguments.slice(half)),
      chunk(delta({}, 'tool_calls')),
      chunk({ choices: [], usage }),
      { data: '[DONE]' },
    ],
    fail: () => [{ data: { error: { message: 'The search failed', type: 'server_error' } } }],
    whole: () => ({}),
  };
}
