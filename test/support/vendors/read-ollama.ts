import { tailHeading } from '../../../src/core/message.ts';
import type { PromptMessage } from './prompt.ts';
import type { Reading } from './reading.ts';
import { listOf, numberOf, recordOf, recordsOf, stringOf } from './wire-values.ts';

/** What a server takes that was told nothing. */
const defaultWindow = 4_096;

/** Reads a body of POST /api/chat, sound or not. */
export function readOllama(body: Record<string, unknown>): Reading {
  const { model, think, tools, format } = body;
  const options = recordOf(body.options);
  const maxOutput = numberOf(options.num_predict);
  return {
    model: stringOf(model),
    stream: body.stream !== false,
    prompt: { tools: listOf(tools), messages: recordsOf(body.messages).map(messageOf) },
    // Another window is another copy of the model, whose cache is empty.
    parameters: { model, think, tools, format, num_ctx: options.num_ctx },
    window: numberOf(options.num_ctx) ?? defaultWindow,
    ...(maxOutput !== undefined && maxOutput >= 0 && { maxOutput }),
  };
}

/** A message is one text: where the tail was joined to it, it is taken apart again. */
function messageOf({ role, content, images }: Record<string, unknown>): PromptMessage {
  const text = stringOf(content);
  const tail = text.indexOf(`\n\n${tailHeading}`);
  const texts = tail === -1 ? [text] : [text.slice(0, tail), text.slice(tail + 2)];
  const shown = listOf(images).map(data => ({ text: '[image]', opaque: stringOf(data) }));
  return { role: stringOf(role), parts: [...shown, ...texts.map(part => ({ text: part }))] };
}
