import type { Reply } from './reply.ts';
import type { Frame, Wire } from './wire.ts';

type Value = Record<string, unknown>;

/** An answer of POST /api/chat to the request with this body. */
export function ollamaWire(body: Value, reply: Reply): Wire {
  const shown = body.think === false ? '' : reply.reasoning;
  const common = { model: reply.model, created_at: new Date(reply.created * 1_000).toISOString() };
  const line = (message: Value, rest: Value = { done: false }): Frame => ({
    data: { ...common, message: { role: 'assistant', ...message }, ...rest },
  });
  const end = {
    // The server has no word for what a filter stopped.
    done_reason: reply.finish === 'content_filter' ? 'stop' : reply.finish,
    done: true,
    total_duration: 5_000_000_000,
    load_duration: 1_000_000,
    prompt_eval_count: reply.usage.input,
    prompt_eval_duration: 1_000_000_000,
    eval_count: reply.usage.output,
    eval_duration: 4_000_000_000,
  };
  return {
    open: () => (shown ? [line({ content: '', thinking: shown })] : []),
    text: piece => line({ content: piece }),
    close: () => [
      // Whole, and without an id as older servers have none.
      ...reply.calls.map(({ name, args }) =>
        line({ content: '', tool_calls: [{ function: { name, arguments: args } }] }),
      ),
      line({ content: '' }, end),
    ],
    fail: () => [{ data: { error: 'an error was encountered while running the model' } }],
    whole: () => ({
      ...common,
      message: {
        role: 'assistant',
        content: reply.text,
        ...(shown && { thinking: shown }),
        ...(reply.calls.length > 0 && {
          tool_calls: reply.calls.map(({ name, args }) => ({ function: { name, arguments: args } })),
        }),
      },
      ...end,
    }),
  };
}
