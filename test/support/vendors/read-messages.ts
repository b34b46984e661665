import type { PromptMessage, PromptPart } from './prompt.ts';
import type { Reading } from './reading.ts';
import { listOf, numberOf, recordOf, recordsOf, stableJson, stringOf } from './wire-values.ts';

/** Reads a body of POST /v1/messages, sound or not. */
export function readMessages(body: Record<string, unknown>): Reading {
  const maxOutput = numberOf(body.max_tokens);
  const system = partsOf(body.system);
  const { model, thinking, output_config, tool_choice } = body;
  const tools = listOf(body.tools).map(withoutMark);
  return {
    model: stringOf(model),
    stream: body.stream === true,
    prompt: {
      tools,
      messages: [...(system.length > 0 ? [{ role: 'system', parts: system }] : []), ...turnsOf(body.messages)],
    },
    parameters: { model, thinking, output_config, tools: tools.length > 0 ? tools : undefined, tool_choice },
    ...(maxOutput !== undefined && { maxOutput }),
  };
}

function turnsOf(messages: unknown): PromptMessage[] {
  return recordsOf(messages).map(message => ({ role: stringOf(message.role), parts: partsOf(message.content) }));
}

/** The parts of a system field or of a message's content. */
function partsOf(content: unknown): PromptPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ text: content }];
  return recordsOf(content).map(partOfBlock);
}

export function partOfBlock(block: Record<string, unknown>): PromptPart {
  switch (block.type) {
    case 'text':
      return { text: stringOf(block.text) };
    case 'thinking':
      return { text: stringOf(block.thinking) };
    case 'image':
    case 'document':
      return { text: `[${block.type}]`, opaque: stableJson(recordOf(block.source)) };
    default:
      return { text: stableJson(withoutMark(block)) };
  }
}

function withoutMark(value: unknown): unknown {
  const { cache_control: _, ...rest } = recordOf(value);
  return rest;
}
