import { hash } from 'node:crypto';
import { anthropicRefusal } from './anthropic-refusal.ts';
import type { Refusal } from './refusal.ts';
import { listOf, recordOf, recordsOf, stringOf } from './wire-values.ts';

type Value = Record<string, unknown>;

/** Models whose thoughts belong to the conversation that led to them. */
const binding = /(?:opus|sonnet|haiku)-5-5|fable-5-[12]/;

/** Of all that stands before a message, but for what only marks the cache. */
function prefixOf({ system, tools, messages }: Value, at: number): string {
  const before = { system, tools, messages: listOf(messages).slice(0, at).map(whole) };
  const text = JSON.stringify(before, (key, value) => (key === 'cache_control' ? undefined : value));
  return hash('sha256', text).slice(0, 12);
}

function whole(message: unknown): unknown {
  const { role, content } = recordOf(message);
  return { role, content: typeof content === 'string' ? [{ type: 'text', text: content }] : content };
}

/** The signature of a thought that answers this request. */
export const signatureOf = (body: Value, thought: string): string =>
  `anthropic-${prefixOf(body, listOf(body.messages).length)}-${Buffer.from(thought).toString('base64')}`;

/** Refuses thoughts of another conversation, unless it is told to leave them out. */
export function checkBinding(body: Value): Refusal | undefined {
  const { prefix_mismatch_behavior: behavior = 'error' } = recordOf(recordOf(body.thinking).block_binding);
  if (!binding.test(stringOf(body.model)) || behavior === 'drop_block') return undefined;
  for (const [at, message] of recordsOf(body.messages).entries()) {
    for (const [part, { type, signature }] of recordsOf(message.content).entries()) {
      if (type !== 'thinking' || stringOf(signature).split('-')[1] === prefixOf(body, at)) continue;
      return anthropicRefusal(
        `messages.${at}.content.${part}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`,
      );
    }
  }
  return undefined;
}
