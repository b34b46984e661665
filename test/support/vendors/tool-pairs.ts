import { anthropicRefusal } from './anthropic-refusal.ts';
import { googleRefusal } from './google-refusal.ts';
import { openAiRefusal } from './open-ai-refusal.ts';
import type { Refusal } from './refusal.ts';
import { recordOf, recordsOf, stringOf } from './wire-values.ts';

const rolesOf = (messages: readonly unknown[]) => messages.map(message => stringOf(recordOf(message).role));
const ofType = (message: unknown, type: string) =>
  recordsOf(recordOf(message).content).filter(block => block.type === type);

/** POST /messages: each call is answered in the very next message, at its beginning; thoughts bear the vendor's signature. */
export function messagesPairs(messages: readonly unknown[]): Refusal | undefined {
  for (const [index, message] of messages.entries()) {
    const calls = ofType(message, 'tool_use').map(({ id }) => stringOf(id));
    const next = messages[index + 1];
    const answered = ofType(next, 'tool_result').map(({ tool_use_id }) => stringOf(tool_use_id));
    const open = calls.filter(id => !answered.includes(id));
    if (open.length > 0 || new Set(calls).size < calls.length)
      return anthropicRefusal(
        `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      );
    const called = ofType(messages[index - 1], 'tool_use').map(({ id }) => id);
    const stray = ofType(message, 'tool_result').find(({ tool_use_id }) => !called.includes(tool_use_id));
    if (stray)
      return anthropicRefusal(
        `messages.${index}.content: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stringOf(stray.tool_use_id)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
      );
    const unsigned = ofType(message, 'thinking').find(({ signature }) => !stringOf(signature).startsWith('anthropic-'));
    if (unsigned) return anthropicRefusal(`messages.${index}.content: Invalid \`signature\` in \`thinking\` block`);
  }
  return undefined;
}

/** POST /chat/completions: the calls of a message are answered, each once, by the tool messages right after it. */
export function chatPairs(messages: readonly unknown[]): Refusal | undefined {
  let open = new Set<string>();
  for (const [index, role] of rolesOf(messages).entries()) {
    const message = recordOf(messages[index]);
    if (role === 'tool') {
      if (!open.delete(stringOf(message.tool_call_id)))
        return openAiRefusal(
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          { param: `messages.[${index}].role` },
        );
      continue;
    }
    if (open.size > 0) return unanswered(open);
    open = new Set(recordsOf(message.tool_calls).map(({ id }) => stringOf(id)));
  }
  return open.size > 0 ? unanswered(open) : undefined;
}

function unanswered(ids: ReadonlySet<string>): Refusal {
  return openAiRefusal(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...ids].join(', ')}`,
    { param: 'messages' },
  );
}

/** POST /responses: every call among the items has an output among them, and the other way round. */
export function responsesPairs(input: readonly unknown[]): Refusal | undefined {
  const items = input.map(recordOf);
  const ids = (type: string) => items.filter(item => item.type === type).map(({ call_id }) => stringOf(call_id));
  const [calls, outputs] = [ids('function_call'), ids('function_call_output')];
  const alone = outputs.find(id => !calls.includes(id));
  if (alone !== undefined)
    return openAiRefusal(`No tool call found for function call output with call_id ${alone}.`, { param: 'input' });
  const open = calls.find(id => !outputs.includes(id));
  if (open === undefined) return undefined;
  return openAiRefusal(`No tool output found for function call ${open}.`, { param: 'input' });
}

/** :generateContent: a message with calls is followed by one with as many responses, and nothing else is. */
export function geminiPairs(contents: readonly unknown[]): Refusal | undefined {
  const count = (message: unknown, key: string) =>
    recordsOf(recordOf(message).parts).filter(part => part[key] !== undefined).length;
  for (const [index, message] of contents.entries()) {
    const responses = count(message, 'functionResponse');
    if (responses !== count(contents[index - 1], 'functionCall'))
      return googleRefusal(
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      );
  }
  return count(contents.at(-1), 'functionCall') === 0
    ? undefined
    : googleRefusal('Please ensure that function call turn comes immediately before a function response turn.');
}
