import { tailHeading } from '../../../src/core/message.ts';
import type { PromptMessage, PromptPart } from './prompt.ts';
import type { Reading } from './reading.ts';
import { listOf, numberOf, recordsOf, stableJson, stringOf } from './wire-values.ts';

/** Reads a body of POST /v1/chat/completions, sound or not. */
export function readChat(body: Record<string, unknown>): Reading {
  const maxOutput = numberOf(body.max_completion_tokens) ?? numberOf(body.max_tokens);
  const { model, reasoning_effort, tools, tool_choice, response_format, verbosity } = body;
  return {
    model: stringOf(model),
    stream: body.stream === true,
    prompt: { tools: listOf(tools), messages: recordsOf(body.messages).map(messageOf) },
    parameters: { model, reasoning_effort, tools, tool_choice, response_format, verbosity },
    ...(maxOutput !== undefined && { maxOutput }),
  };
}

function messageOf(message: Record<string, unknown>): PromptMessage {
  const said = typeof message.content === 'string' ? partsOf(message.content) : recordsOf(message.content).map(partOf);
  const called = recordsOf(message.tool_calls).map(call => ({ text: stableJson(call) }));
  return { role: stringOf(message.role), parts: [...said, ...called] };
}

/** Where a message has one text only, the tail is a part of it. */
function partsOf(text: string): PromptPart[] {
  const at = text.indexOf(`\n\n${tailHeading}`);
  return at === -1 ? [{ text }] : [{ text: text.slice(0, at) }, { text: text.slice(at + 2) }];
}

function partOf(part: Record<string, unknown>): PromptPart {
  if (part.type === 'text') return { text: stringOf(part.text) };
  return { text: part.type === 'image_url' ? '[image]' : `[${stringOf(part.type)}]`, opaque: stableJson(part) };
}
