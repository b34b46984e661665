import { callDeltas, finishOf, wholeCalls } from './chat-wire.ts';
import type { Reply } from './reply.ts';
import type { Frame, Wire } from './wire.ts';
import { recordOf } from './wire-values.ts';

type Value = Record<string, unknown>;

const nativeFinishes: Readonly<Record<Reply['finish'], string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  content_filter: 'refusal',
  pause: 'pause_turn',
  full: 'length',
};

/** Credits that a token costs here, cached or not; enough to tell costs apart. */
const creditsPerToken = 0.000_002;
const creditsPerSearch = 0.005;

/** An answer of POST /api/v1/chat/completions to the request with this body. */
export function openRouterWire(body: Value, reply: Reply): Wire {
  const shown = recordOf(body.reasoning).exclude === true ? '' : reply.reasoning;
  const common = { id: `gen-${reply.id}`, provider: 'Anthropic', model: reply.model, created: reply.created };
  const chunk = (rest: Value): Frame => ({ data: { ...common, object: 'chat.completion.chunk', ...rest } });
  const delta = (content: Value, finish: string | null = null, native: string | null = null): Value => ({
    choices: [
      {
        index: 0,
        delta: { role: 'assistant', content: '', ...content },
        finish_reason: finish,
        native_finish_reason: native,
        logprobs: null,
      },
    ],
  });
  const annotations = annotationsOf(reply);
  const native = nativeFinishes[reply.finish];
  const thoughts = {
    reasoning: shown,
    reasoning_details: [
      { type: 'reasoning.text', text: shown, signature: 'c2lnbmVk', format: 'anthropic-claude-v1', index: 0 },
    ],
  };
  return {
    open: () => [
      { comment: 'OPENROUTER PROCESSING', ...chunk(delta({})) },
      ...(shown ? [{ comment: 'OPENROUTER PROCESSING', ...chunk(delta(thoughts)) }] : []),
    ],
    text: piece => chunk(delta({ content: piece })),
    close: () => [
      ...(annotations.length > 0 ? [chunk(delta({ annotations }))] : []),
      ...callDeltas(reply).map(content => chunk(delta(content))),
      chunk(delta({}, finishOf(reply, reply.finish), native)),
      // Usage comes last, in a chunk whose choice says nothing any more.
      chunk({ ...delta({}), usage: usageOf(reply) }),
      { data: '[DONE]' },
    ],
    fail: () => [
      chunk({ ...delta({}, 'error'), error: { code: 502, message: 'Provider disconnected unexpectedly' } }),
      { data: '[DONE]' },
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
            ...(shown && thoughts),
            ...(annotations.length > 0 && { annotations }),
            ...wholeCalls(reply),
          },
          finish_reason: finishOf(reply, reply.finish),
          native_finish_reason: native,
          logprobs: null,
        },
      ],
      usage: usageOf(reply),
    }),
  };
}

function annotationsOf({ pages, text }: Reply): Value[] {
  return pages.map(({ url, title, quote }) => ({
    type: 'url_citation',
    url_citation: {
      url,
      title,
      ...(quote !== undefined && { content: quote }),
      start_index: 0,
      end_index: text.length,
    },
  }));
}

function usageOf({ usage, pages }: Reply): Value {
  const searches = pages.length > 0 ? 1 : 0;
  const cost = (usage.input + usage.output) * creditsPerToken + searches * creditsPerSearch;
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    cost,
    ...(searches > 0 && { server_tool_use: { web_search_requests: searches } }),
    is_byok: false,
    prompt_tokens_details: {
      cached_tokens: usage.cacheRead,
      cache_write_tokens: usage.cacheWrite,
      audio_tokens: 0,
      video_tokens: 0,
    },
    cost_details: { upstream_inference_cost: cost },
    completion_tokens_details: { reasoning_tokens: usage.reasoning, image_tokens: 0 },
  };
}
