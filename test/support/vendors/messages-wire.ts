import { thinks } from './check-messages.ts';
import type { Reply } from './reply.ts';
import type { Frame, Wire } from './wire.ts';
import { recordOf } from './wire-values.ts';

type Value = Record<string, unknown>;

/** Parts of what was written to the cache, by how long it is kept. */
export interface WrittenFor {
  short: number;
  long: number;
}

const stopReasons = { stop: 'end_turn', length: 'max_tokens', content_filter: 'refusal' };

/** An answer of POST /v1/messages to the request with this body. */
export function messagesWire(body: Value, reply: Reply, written: WrittenFor): Wire {
  const thinking = thinks(body) && reply.reasoning !== '' ? thinkingBlock(body, reply) : undefined;
  const textIndex = thinking ? 1 : 0;
  const message = {
    id: `msg_${reply.id}`,
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  const stop = { stop_reason: stopReasons[reply.finish], stop_sequence: null };
  const hasText = reply.text !== '';

  return {
    open: () => [
      frame('message_start', { message: { ...message, usage: { ...usageOf(reply, written), output_tokens: 1 } } }),
      ...(thinking ? thinkingFrames(thinking) : []),
      ...(hasText
        ? [frame('content_block_start', { index: textIndex, content_block: { type: 'text', text: '' } })]
        : []),
      frame('ping', {}),
    ],
    text: piece => frame('content_block_delta', { index: textIndex, delta: { type: 'text_delta', text: piece } }),
    close: () => [
      ...(hasText ? [frame('content_block_stop', { index: textIndex })] : []),
      frame('message_delta', { delta: stop, usage: usageOf(reply, written) }),
      frame('message_stop', {}),
    ],
    fail: () => [frame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })],
    whole: () => ({
      ...message,
      ...stop,
      content: [...(thinking ? [thinking] : []), ...(hasText ? [{ type: 'text', text: reply.text }] : [])],
      usage: usageOf(reply, written),
    }),
  };
}

function frame(type: string, rest: Value): Frame {
  return { event: type, data: { type, ...rest } };
}

interface ThinkingBlock {
  type: 'thinking';
  /** Empty where the request wants thoughts left out. */
  thinking: string;
  signature: string;
}

function thinkingBlock(body: Value, reply: Reply): ThinkingBlock {
  const shown = recordOf(body.thinking).display === 'omitted' ? '' : reply.reasoning;
  return { type: 'thinking', thinking: shown, signature: Buffer.from(reply.reasoning).toString('base64') };
}

function thinkingFrames({ thinking, signature }: ThinkingBlock): Frame[] {
  const delta = (content: Value): Frame => frame('content_block_delta', { index: 0, delta: content });
  return [
    frame('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
    ...(thinking ? [delta({ type: 'thinking_delta', thinking })] : []),
    delta({ type: 'signature_delta', signature }),
    frame('content_block_stop', { index: 0 }),
  ];
}

function usageOf({ usage }: Reply, written: WrittenFor): Value {
  return {
    input_tokens: Math.max(0, usage.input - usage.cacheRead - usage.cacheWrite),
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation: { ephemeral_5m_input_tokens: written.short, ephemeral_1h_input_tokens: written.long },
    output_tokens: usage.output,
    ...(usage.reasoning > 0 && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
    service_tier: 'standard',
  };
}
