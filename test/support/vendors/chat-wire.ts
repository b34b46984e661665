import { openAiModel } from './open-ai-models.ts';
import type { Reply } from './reply.ts';
import { padding } from './responses-wire.ts';
import { piecesOf } from './tool-calls.ts';
import type { Frame, Wire } from './wire.ts';
import { recordOf } from './wire-values.ts';

type Value = Record<string, unknown>;

/** An answer of POST /v1/chat/completions to the request with this body. */
export function chatWire(body: Value, reply: Reply): Wire {
  const withUsage = recordOf(body.stream_options).include_usage === true;
  // OpenAI keeps its models' thoughts to itself; the servers that speak its dialect show them in a field of their own.
  const shown = openAiModel(reply.model).known ? '' : reply.reasoning;
  const common = {
    id: `chatcmpl-${reply.id}`,
    created: reply.created,
    model: reply.model,
    service_tier: 'default',
    system_fingerprint: null,
  };
  const chunk = (rest: Value): Frame => ({
    data: { ...common, object: 'chat.completion.chunk', ...(withUsage && { usage: null }), ...rest },
  });
  const delta = (content: Value, finish: string | null = null): Value => ({
    choices: [{ index: 0, delta: content, logprobs: null, finish_reason: finish }],
  });

  return {
    open: () => [
      chunk({ ...delta({ role: 'assistant', content: '', refusal: null }), ...padding(body, '') }),
      ...(shown ? [chunk(delta({ reasoning_content: shown }))] : []),
    ],
    text: piece => chunk({ ...delta({ content: piece }), ...padding(body, piece) }),
    close: () => [
      ...callDeltas(reply).map(content => chunk(delta(content))),
      chunk(delta({}, finishOf(reply, reply.finish))),
      ...(withUsage ? [chunk({ choices: [], usage: usageOf(reply) })] : []),
      { data: '[DONE]' },
    ],
    fail: () => [
      {
        data: {
          error: {
            message: 'The server had an error while processing your request.',
            type: 'server_error',
            param: null,
            code: null,
          },
        },
      },
    ],
    whole: () => ({
      ...common,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: reply.text,
            refusal: null,
            annotations: [],
            ...(shown && { reasoning_content: shown }),
            ...wholeCalls(reply),
          },
          logprobs: null,
          finish_reason: finishOf(reply, reply.finish),
        },
      ],
      usage: usageOf(reply),
    }),
  };
}

/** The pieces of a stream that call tools: first who, then with what. */
export function callDeltas({ calls }: Reply): Value[] {
  return calls.flatMap(({ id, name, text }, index) => [
    { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] },
    ...piecesOf(text).map(piece => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ]);
}

export function wholeCalls({ calls }: Reply): Value {
  if (calls.length === 0) return {};
  return {
    tool_calls: calls.map(({ id, name, text }) => ({ id, type: 'function', function: { name, arguments: text } })),
  };
}

export function finishOf({ calls, finish }: Reply, usual: string): string {
  return calls.length > 0 && finish === 'stop' ? 'tool_calls' : usual;
}

function usageOf({ usage }: Reply): Value {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: {
      cached_tokens: usage.cacheRead,
      audio_tokens: 0,
      ...(usage.cacheWrite > 0 && { cache_write_tokens: usage.cacheWrite }),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
