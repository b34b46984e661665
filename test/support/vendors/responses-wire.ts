import type { Reply } from './reply.ts';
import { piecesOf } from './tool-calls.ts';
import type { Frame, Wire } from './wire.ts';
import { recordOf } from './wire-values.ts';

type Value = Record<string, unknown>;

/** An answer of POST /v1/responses to the request with this body. */
export function responsesWire(body: Value, reply: Reply): Wire {
  const show = recordOf(body.reasoning).summary != null && reply.reasoning !== '';
  const items = outputItems(reply, show, body);
  const thoughts = items.filter(item => item.type !== 'message' && item.type !== 'function_call').length;
  const message = items.find(item => item.type === 'message');
  const place = { item_id: `msg_${reply.id}`, output_index: thoughts, content_index: 0 };
  let sequence = 0;

  const frame = (type: string, rest: Value): Frame => ({
    event: type,
    data: { type, sequence_number: sequence++, ...rest },
  });
  const started = (): Value => responseObject(body, reply, 'in_progress', []);
  const ended = (): Value => responseObject(body, reply, statusOf(reply), items);

  return {
    open: () => [
      frame('response.created', { response: started() }),
      frame('response.in_progress', { response: started() }),
      ...items.filter(item => item.type === 'reasoning').flatMap(item => reasoningFrames(frame, item, reply, show)),
      ...items.flatMap((item, index) => (item.type === 'web_search_call' ? searchFrames(frame, item, index) : [])),
      ...(message
        ? [
            frame('response.output_item.added', {
              output_index: thoughts,
              item: { ...message, status: 'in_progress', content: [] },
            }),
            frame('response.content_part.added', { ...place, part: textPart('') }),
          ]
        : []),
    ],
    text: piece =>
      frame('response.output_text.delta', { ...place, delta: piece, logprobs: [], ...padding(body, piece) }),
    close: () => [
      ...(message
        ? [
            ...annotationsOf(reply).map((annotation, index) =>
              frame('response.output_text.annotation.added', { ...place, annotation_index: index, annotation }),
            ),
            frame('response.output_text.done', { ...place, text: reply.text, logprobs: [] }),
            frame('response.content_part.done', { ...place, part: textPart(reply.text, annotationsOf(reply)) }),
            frame('response.output_item.done', { output_index: thoughts, item: message }),
          ]
        : []),
      ...items.flatMap((item, index) => (item.type === 'function_call' ? callFrames(frame, item, index) : [])),
      frame(`response.${statusOf(reply)}`, { response: ended() }),
    ],
    fail: () => {
      const error = { code: 'server_error', message: 'An error occurred while processing your request.' };
      return [
        frame('error', { ...error, param: null }),
        frame('response.failed', { response: { ...responseObject(body, reply, 'failed', []), usage: null, error } }),
      ];
    },
    whole: ended,
  };
}

function statusOf(reply: Reply): 'completed' | 'incomplete' {
  return reply.finish === 'stop' || reply.finish === 'pause' ? 'completed' : 'incomplete';
}

function outputItems(reply: Reply, show: boolean, body: Value): Value[] {
  const items: Value[] = [];
  const sealed = Array.isArray(body.include) && body.include.includes('reasoning.encrypted_content');
  if (reply.reasoning !== '')
    items.push({
      id: `rs_${reply.id}`,
      type: 'reasoning',
      summary: show ? [{ type: 'summary_text', text: reply.reasoning }] : [],
      ...(sealed && { encrypted_content: Buffer.from(reply.reasoning).toString('base64') }),
    });
  if (reply.pages.length > 0) items.push(searchItem(reply, body));
  if (reply.text !== '')
    items.push({
      id: `msg_${reply.id}`,
      type: 'message',
      status: statusOf(reply),
      role: 'assistant',
      content: [textPart(reply.text, annotationsOf(reply))],
    });
  for (const [index, { id, name, text }] of reply.calls.entries())
    items.push({
      id: `fc_${reply.id}_${index}`,
      type: 'function_call',
      status: 'completed',
      call_id: id,
      name,
      arguments: text,
    });
  return items;
}

function callFrames(frame: (type: string, rest: Value) => Frame, item: Value, index: number): Frame[] {
  const place = { item_id: item.id, output_index: index };
  const text = String(item.arguments);
  return [
    frame('response.output_item.added', {
      output_index: index,
      item: { ...item, status: 'in_progress', arguments: '' },
    }),
    ...piecesOf(text).map(delta => frame('response.function_call_arguments.delta', { ...place, delta })),
    frame('response.function_call_arguments.done', { ...place, arguments: text }),
    frame('response.output_item.done', { output_index: index, item }),
  ];
}

function reasoningFrames(
  frame: (type: string, rest: Value) => Frame,
  item: Value,
  reply: Reply,
  show: boolean,
): Frame[] {
  const place = { item_id: item.id, output_index: 0, summary_index: 0 };
  const text = reply.reasoning;
  return [
    frame('response.output_item.added', { output_index: 0, item: { ...item, summary: [] } }),
    ...(show
      ? [
          frame('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } }),
          frame('response.reasoning_summary_text.delta', { ...place, delta: text }),
          frame('response.reasoning_summary_text.done', { ...place, text }),
          frame('response.reasoning_summary_part.done', { ...place, part: { type: 'summary_text', text } }),
        ]
      : []),
    frame('response.output_item.done', { output_index: 0, item }),
  ];
}

function textPart(text: string, annotations: Value[] = []): Value {
  return { type: 'output_text', annotations, logprobs: [], text };
}

function searchItem(reply: Reply, body: Value): Value {
  const wanted = Array.isArray(body.include) && body.include.includes('web_search_call.action.sources');
  const sources = reply.pages.map(({ url }) => ({ type: 'url', url }));
  const action = { type: 'search', query: 'what is new', queries: ['what is new'], ...(wanted && { sources }) };
  return { id: `ws_${reply.id}`, type: 'web_search_call', status: 'completed', action };
}

function searchFrames(frame: (type: string, rest: Value) => Frame, item: Value, index: number): Frame[] {
  const place = { output_index: index, item_id: item.id };
  const { action: _action, ...begun } = item;
  return [
    frame('response.output_item.added', { output_index: index, item: { ...begun, status: 'in_progress' } }),
    ...['in_progress', 'searching', 'completed'].map(stage => frame(`response.web_search_call.${stage}`, place)),
    frame('response.output_item.done', { output_index: index, item }),
  ];
}

/** Only what the answer quotes is cited. */
function annotationsOf({ pages, text }: Reply): Value[] {
  return pages.flatMap(({ url, title, quote }) =>
    quote === undefined ? [] : [{ type: 'url_citation', start_index: 0, end_index: text.length, url: `${url}`, title }],
  );
}

/** Hides the length of a piece from who listens on the network, unless the request does not want it. */
export function padding(body: Value, piece: string): Value {
  if (recordOf(body.stream_options).include_obfuscation === false) return {};
  return { obfuscation: 'x'.repeat(16 - (piece.length % 16)) };
}

function responseObject(body: Value, reply: Reply, status: string, output: Value[]): Value {
  const reasons = {
    stop: undefined,
    pause: undefined,
    length: 'max_output_tokens',
    full: 'max_output_tokens',
    content_filter: 'content_filter',
  };
  const reasoning = recordOf(body.reasoning);
  return {
    id: `resp_${reply.id}`,
    object: 'response',
    created_at: reply.created,
    status,
    background: false,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason: reasons[reply.finish] } : null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    model: reply.model,
    output,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: status === 'in_progress' ? 'auto' : 'default',
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: { format: { type: 'text' }, ...recordOf(body.text) },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    usage: status === 'in_progress' ? null : usageOf(reply),
    user: body.user ?? null,
    metadata: body.metadata ?? {},
  };
}

function usageOf({ usage }: Reply): Value {
  return {
    input_tokens: usage.input,
    input_tokens_details: {
      cached_tokens: usage.cacheRead,
      ...(usage.cacheWrite > 0 && { cache_write_tokens: usage.cacheWrite }),
    },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: usage.input + usage.output,
  };
}
