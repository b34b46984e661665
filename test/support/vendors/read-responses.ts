import type { PromptMessage, PromptPart } from './prompt.ts';
import type { Reading } from './reading.ts';
import { listOf, numberOf, recordOf, recordsOf, stableJson, stringOf } from './wire-values.ts';

/** Reads a body of POST /v1/responses, sound or not. */
export function readResponses(body: Record<string, unknown>): Reading {
  const maxOutput = numberOf(body.max_output_tokens);
  const instructions = stringOf(body.instructions);
  const system = instructions ? [{ role: 'system', parts: [{ text: instructions }] }] : [];
  const { model, reasoning, tools, tool_choice, text } = body;
  return {
    model: stringOf(model),
    stream: body.stream === true,
    prompt: { tools: listOf(tools), messages: [...system, ...messagesOf(body.input)] },
    parameters: { model, reasoning, tools, tool_choice, text },
    ...(maxOutput !== undefined && { maxOutput }),
  };
}

function messagesOf(input: unknown): PromptMessage[] {
  if (typeof input === 'string') return [{ role: 'user', parts: [{ text: input }] }];
  return recordsOf(input).map(messageOf);
}

function messageOf(item: Record<string, unknown>): PromptMessage {
  if (item.type === 'function_call_output') return { role: 'tool', parts: [{ text: textOrJson(item.output) }] };
  // What the model said itself without words: its calls and its sealed thoughts.
  if (item.type !== undefined && item.type !== 'message')
    return { role: 'assistant', parts: [{ text: stableJson(item) }] };
  const role = stringOf(item.role);
  if (typeof item.content === 'string') return { role, parts: [{ text: item.content }] };
  return { role, parts: recordsOf(item.content).map(partOf) };
}

function partOf(part: Record<string, unknown>): PromptPart {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
      return { text: stringOf(part.text) };
    case 'input_image':
      return { text: '[image]', opaque: stableJson(part) };
    default:
      return { text: `[${stringOf(part.type)}]`, opaque: stableJson(recordOf(part)) };
  }
}

function textOrJson(value: unknown): string {
  return typeof value === 'string' ? value : stableJson(value ?? null);
}
