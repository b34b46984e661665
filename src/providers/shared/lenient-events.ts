import { isRecord, parsedJson, recordIn, recordsIn, textIn } from '../../core/json.ts';
import { messageOf } from '../../models/resilience/classify-error.ts';

export type Body = Record<string, unknown>;

/**
 * The types that the schemas of the vendors' packages know, by the field that has the typed object. In the packages of Anthropic and xAI any
 * other type fails the whole answer, and vendors add types within a version. Events that no package uses are left out as well.
 */
const known = {
  event:
    /^(?:error|(?:message|content_block)_(?:start|delta|stop)|response\.(?:created|in_progress|completed|incomplete|failed|done|output_item\.(?:added|done)|output_text\.(?:delta|annotation\.added)|reasoning_summary_part\.(?:added|done)|refusal\.delta|(?:reasoning_text|reasoning_summary_text|function_call_arguments|custom_tool_call_input|code_interpreter_call_code)\.(?:delta|done)))$/,
  content_block:
    /^(?:text|thinking|redacted_thinking|compaction|fallback|(?:server_|mcp_)?tool_use|(?:mcp|advisor|tool_search|web_fetch|web_search|(?:bash_|text_editor_)?code_execution)_tool_result)$/,
  delta: /^(?:text|thinking|signature|input_json|citations|compaction)_delta$/,
  citation: /^(?:web_search_result|search_result|page|char|content_block)_location$/,
  item: /^(?:message|reasoning|(?:function|custom_tool|mcp|web_search|x_search|file_search|image_generation|code_interpreter|code_execution|view_image|view_x_video)_call)$/,
};

/** An event of OpenAI's Responses, with its type in front, that has nothing which has to be looked at. */
const plain =
  /^(?:event:[^\n]*\n)?data: ?\{"type": ?"(response\.(?!refusal)[\w.]+)"(?!.*"(?:(?:error|base_resp|choices|item|response|content_block|index)":|delta": ?\{))/s;

/** True where there is no type as well. */
function isKnown(holder: unknown, field: Exclude<keyof typeof known, 'event'>): boolean {
  const { type } = recordIn(recordIn(holder)[field]);
  return typeof type !== 'string' || known[field].test(type);
}

/** MiniMax's numbers for what went wrong, by the status that others have for it; it sends them under a 200. */
const codes = {
  400: [1026, 1027, 2013],
  401: [1004, 2049],
  402: [1008],
  408: [1001],
  429: [1002, 1039, 1041, 2045, 2056],
};

/** The error in a body or an event, in the shape that all packages read; undefined where nothing went wrong. */
export function failureIn(body: Body): Body | undefined {
  const { status_code: number = 0, status_msg: said } = recordIn(body.base_resp);
  const [status = 500] = Object.entries(codes).find(([, its]) => its.includes(Number(number))) ?? [];
  if (Number(number) !== 0) return { type: `${number}`, message: textIn(said), code: Number(status) };
  const isBare = [body.message, body.detail, body.msg, body.error_msg].some(text => typeof text === 'string');
  const error = body.error || recordIn(body.x_groq).error || (isBare && !('choices' in body) && body);
  if (!error || (isRecord(error) && !Object.values(error).some(Boolean))) return undefined;
  return { ...recordIn(error), type: textIn(recordIn(error).type) || 'error', message: messageOf({ error }) ?? '' };
}

/** The reason for which a choice ended; undefined where it did not, for which some servers write a blank. */
export const reasonIn = (reason: unknown): string | undefined =>
  /^(?:null)?$/.test(textIn(reason).trim()) ? undefined : textIn(reason);

type Changes = Readonly<Record<string, (value: unknown) => unknown>>;

const inRecord = (changes: Changes) => (value: unknown) =>
  isRecord(value)
    ? { ...value, ...Object.fromEntries(Object.entries(changes).map(([name, change]) => [name, change(value[name])])) }
    : value;

const inRecords = (changes: Changes) => (value: unknown) =>
  Array.isArray(value) ? recordsIn(value).map(inRecord(changes)) : value;

/** Numbers that came as texts, at any depth. */
function numeric(value: unknown): unknown {
  if (isRecord(value)) return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, numeric(each)]));
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
}

/** A refusal as text, which not all packages read. */
const spoken = (delta: unknown): unknown => {
  const { refusal, ...rest } = recordIn(delta);
  return textIn(refusal) === '' ? delta : { ...rest, content: `${textIn(rest.content)}${textIn(refusal)}` };
};

/** A chunk of OpenAI's chat as the packages' schemas have it, where servers write it otherwise; `placed` tells which call a piece is of. */
const chatChunk = (placed: (call: Body) => Body, isRefused: () => boolean) =>
  inRecord({
    // An empty one, which packages take for a failure.
    error: () => undefined,
    created: numeric,
    usage: numeric,
    x_groq: inRecord({ usage: numeric }),
    choices: choices =>
      inRecords({
        index: (index = 0) => index,
        finish_reason(reason) {
          if (typeof reason !== 'string') return reason;
          return reason === 'stop' && isRefused() ? 'content_filter' : (reasonIn(reason) ?? null);
        },
        delta: delta =>
          inRecord({
            role: role => (role === 'assistant' ? role : undefined),
            tool_calls: calls => (Array.isArray(calls) ? recordsIn(calls).map(placed) : calls),
          })(spoken(delta)),
      })(choices ?? []),
  });

const callArguments = inRecord({ arguments: args => (isRecord(args) ? JSON.stringify(args) : args) });

/** A usage with the number that the package's schema wants: servers that speak as Anthropic does leave it out. */
const withCount = (name: string) => (usage: unknown) => {
  const told = recordIn(numeric(usage));
  return { ...told, [name]: told[name] ?? 0 };
};

/** The same of OpenAI's Responses, where one that lacks a count stands for none. */
function responseUsage(usage: unknown): unknown {
  if (!isRecord(usage)) return usage;
  const told = recordIn(numeric(usage));
  if (typeof told.input_tokens !== 'number' || typeof told.output_tokens !== 'number') return null;
  return JSON.stringify(told) === JSON.stringify(usage) ? usage : told;
}

/** What such servers leave out of Anthropic's events, by their type. */
const typedChanges: Readonly<Record<string, (event: Body) => unknown>> = {
  message_start: inRecord({ message: inRecord({ usage: withCount('input_tokens') }) }),
  message_delta: inRecord({ usage: withCount('output_tokens') }),
};

/** An item of a response as the events of a stream tell it. */
export function itemEvents(item: Body, output_index: number): Body[] {
  const place = { item_id: item.id, output_index };
  const called = typeof item.arguments === 'string';
  const begun = { ...item, ...(called && { arguments: '' }), content: [], summary: [] };
  const part = { type: 'summary_text', text: '' };
  return [
    { type: 'response.output_item.added', output_index, item: begun },
    ...recordsIn(item.summary).flatMap(({ text }, summary_index) => [
      { type: 'response.reasoning_summary_part.added', ...place, summary_index, part },
      { type: 'response.reasoning_summary_text.delta', ...place, summary_index, delta: text },
    ]),
    ...recordsIn(item.content).flatMap((part, content_index) => partEvents(part, { ...place, content_index })),
    ...(called ? [{ type: 'response.function_call_arguments.delta', ...place, delta: item.arguments }] : []),
    { type: 'response.output_item.done', output_index, item },
  ];
}

function partEvents({ type, text, refusal, annotations }: Body, place: Body): Body[] {
  if (type === 'refusal') return [{ type: 'response.refusal.delta', ...place, delta: refusal }];
  // Servers of open models tell thoughts in clear.
  if (type === 'reasoning_text') return [{ type: 'response.reasoning_text.delta', ...place, delta: text }];
  return [
    { type: 'response.output_text.delta', ...place, delta: text },
    ...recordsIn(annotations).map((annotation, annotation_index) => ({
      type: 'response.output_text.annotation.added',
      ...place,
      annotation_index,
      annotation,
    })),
  ];
}

const textDelta = 'response.output_text.delta';
const textDone = 'response.output_text.done';

/** Whether it says more than who speaks. */
const isSaying = (delta: unknown): boolean =>
  Object.entries(recordIn(delta)).some(
    ([name, said]) => name !== 'role' && said !== null && (Array.isArray(said) ? said.length > 0 : said !== ''),
  );

/**
 * Makes the events of one answer what the schemas of the vendors' packages take: drops types that they do not know, fixes chunks of a
 * chat, and makes an error beside other fields an event.
 */
export class LenientEvents {
  /** Typed are Anthropic's events, and those of OpenAI's Responses. */
  #dialect: 'typed' | 'chat' | undefined;
  /** The last one for which a chat ended. */
  #reason: string | undefined;
  /** A message of Anthropic's is told to be over, and nothing said yet that this was all. */
  #isOpen = false;
  readonly #unknownBlocks = new Set<unknown>();
  /** Calls of a chat: the numbers that they go by, by their ids, and by the numbers that the server gave them last. */
  readonly #callsById = new Map<string, number>();
  readonly #callsByIndex = new Map<unknown, number>();
  #isRefused = false;
  /** Pieces of text came; what is told at the end repeats them. */
  #hasPieces = false;
  /** What messages said so far, of a server that writes them where chunks have pieces. */
  #said = '';
  /** IDs and types of the items of a response that were told. */
  readonly #told = new Set<unknown>();
  readonly #chatChunk = chatChunk(
    call => this.#placed(call),
    () => this.#isRefused,
  );

  isWhole(): boolean {
    return this.#dialect === 'typed'
      ? this.#reason !== undefined
      : /^(?:stop|length|tool_calls|content_filter)$/.test(this.#reason ?? '');
  }

  /** What is missing behind the last event of an answer that is whole. */
  end(): string {
    return this.#isOpen ? '\n\ndata: {"type":"message_stop"}\n\n' : '';
  }

  /** A text of events as packages take it; all of them are whole but for the last of a stream that was cut. */
  fitted(events: string): string {
    const all: string[] = [];
    for (const event of events.split(/\r\n\r\n|\n\n|\r\r/)) {
      if (event === '') all.push(event);
      else this.#fit(event, all);
    }
    return all.join('\n\n');
  }

  /** Adds an event as it came, or as it should have come; a chat that told no reason gets one before its `[DONE]`. */
  #fit(text: string, all: string[]): void {
    const type = this.#dialect === 'typed' ? plain.exec(text)?.[1] : undefined;
    if (type === textDelta) this.#hasPieces = true;
    if (type !== undefined && (this.#hasPieces || type !== textDone)) {
      if (known.event.test(type)) all.push(text);
      return;
    }
    const lines: string[] = [];
    for (const line of text.match(/^data:[^\r\n]*/gm) ?? []) lines.push(line.slice(5));
    // Some servers name the field of an error by what it is.
    const [, error] = (lines.length === 0 && /^error: ?(\{.*)/m.exec(text)) || [];
    const data = error ? `{"error":${error}}` : lines.join('\n');
    const event = data.trim() === '[DONE]' ? undefined : parsedJson(data);
    if (isRecord(event)) {
      for (const missing of this.#missing(event)) {
        const piece = this.#event(missing);
        if (piece) all.push(`data: ${JSON.stringify(piece)}`);
      }
      const fit = this.#event(event);
      if (fit) all.push(fit === event ? text : `data: ${JSON.stringify(fit)}`);
    } else if (data.trim() === '[DONE]') {
      if (this.#dialect === 'chat' && !this.#reason) all.push(stopped);
      all.push(text);
    } else if (!this.isWhole()) all.push(text);
  }

  /** Undefined: dropped. The same object: to be sent as it came. An error that follows the end of a whole answer is dropped too. */
  #event(event: Body): unknown {
    const type = 'choices' in event ? '' : textIn(event.type);
    const isOfDialect = known.event.test(type);
    const isAnswer = isOfDialect || (type !== '' && this.#dialect === 'typed' && !event.error);
    const error = isAnswer && !('base_resp' in event) ? undefined : failureIn(event);
    if ((error || type === 'error') && this.isWhole()) return undefined;
    if (error) return { type: 'error', error };
    if (isOfDialect && type !== 'error') this.#dialect = 'typed';
    if ('choices' in event || event.object === 'chat.completion.chunk') this.#dialect = 'chat';
    if (type !== '' || this.#dialect === 'typed') return isOfDialect ? this.#typed(event) : undefined;
    for (const { finish_reason, delta } of recordsIn(event.choices)) {
      this.#reason = reasonIn(finish_reason) ?? this.#reason;
      this.#isRefused ||= textIn(recordIn(delta).refusal) !== '';
    }
    if (this.#dialect !== 'chat') return event;
    // Some servers tell it of the choice.
    const { usage = recordsIn(event.choices)[0]?.usage } = event;
    if (this.#hasPieces) return this.#chatChunk(usage === event.usage ? event : { ...event, usage });
    return this.#chatChunk({
      ...event,
      usage,
      choices: recordsIn(event.choices).map(choice => this.#inPieces(choice)),
    });
  }

  /** A choice with a piece of the answer, where a server writes all that was said so far, or a text without a message. */
  #inPieces({ message, text, ...choice }: Body): Body {
    this.#hasPieces = isSaying(choice.delta);
    if (this.#hasPieces) return choice;
    if (typeof text === 'string') return { ...choice, delta: { content: text } };
    if (!isRecord(message)) return choice;
    const content = textIn(message.content);
    const delta = { ...message, content: content.startsWith(this.#said) ? content.slice(this.#said.length) : content };
    this.#said += delta.content;
    // Calls that are told again would be made twice.
    this.#hasPieces = recordsIn(message.tool_calls).length > 0;
    return { ...choice, delta };
  }

  /** What a server of Responses tells only when it is whole, as the pieces that were to come before. */
  #missing({ type, ...event }: Body): Body[] {
    this.#hasPieces ||= type === textDelta || type === 'response.refusal.delta';
    if (this.#hasPieces) return [];
    if (type === textDone) {
      if (typeof event.text !== 'string') return [];
      this.#told.add(event.item_id).add('message');
      return [{ ...event, type: textDelta, delta: event.text }];
    }
    const { id, type: kind, content } = recordIn(event.item);
    if (type === 'response.output_item.done') {
      const { output_index } = event;
      // Thoughts are no text, and came in pieces of their own.
      const parts = this.#told.has(id) || kind === 'reasoning' ? [] : recordsIn(content);
      this.#told.add(id).add(kind);
      return parts.flatMap((part, content_index) => partEvents(part, { item_id: id, output_index, content_index }));
    }
    if (type !== 'response.completed' && type !== 'response.incomplete') return [];
    const { output } = recordIn(event.response);
    return recordsIn(output).flatMap((item, index) => (this.#told.has(item.type) ? [] : itemEvents(item, index)));
  }

  /** A piece of a call with a number that is the call's alone: some servers give none, or the same to all. */
  #placed({ type = 'function', ...call }: Body): Body {
    const id = textIn(call.id).trim();
    const isNew = id !== '' && !this.#callsById.has(id) && textIn(recordIn(call.function).name).trim() !== '';
    if (isNew) this.#callsById.set(id, this.#callsById.size);
    const own = this.#callsById.get(id) ?? this.#callsByIndex.get(call.index);
    const index = own ?? call.index ?? Math.max(0, this.#callsById.size - 1);
    if (typeof index === 'number') this.#callsByIndex.set(call.index, index);
    return { ...call, type, index, function: callArguments(call.function) };
  }

  /** One that was refused: as text, and with an end that all packages know. */
  #refused(event: Body): Body {
    const { type, response } = event;
    this.#isRefused ||= type === 'response.refusal.delta';
    if (type === 'response.refusal.delta') return { ...event, type: textDelta };
    if (type !== 'response.completed' || !this.#isRefused) return event;
    const ended = { ...recordIn(response), status: 'incomplete', incomplete_details: { reason: 'content_filter' } };
    return { ...event, type: 'response.incomplete', response: ended };
  }

  #typed(came: Body): Body | undefined {
    const event = this.#refused(came);
    const { type, index, delta, response } = event;
    if (type === 'message_delta') this.#reason = reasonIn(recordIn(delta).stop_reason);
    if (type === 'response.completed' || type === 'response.incomplete') this.#reason = type;
    this.#isOpen = type === 'message_delta' && this.#reason !== undefined;
    if (!isKnown(event, 'content_block')) this.#unknownBlocks.add(index);
    const isUsed = isKnown(event, 'delta') && isKnown(delta, 'citation') && isKnown(event, 'item');
    if (!isUsed || (index !== undefined && this.#unknownBlocks.has(index))) return undefined;
    const change = typedChanges[textIn(type)];
    if (change) return recordIn(change(event));
    if (!isRecord(response)) return event;
    const output = recordsIn(response.output).filter(item => isKnown({ item }, 'item'));
    const usage = responseUsage(response.usage);
    const isSame = Array.isArray(response.output) && response.output.length === output.length;
    return isSame && usage === response.usage ? event : { ...event, response: { ...response, output, usage } };
  }
}

const stopped = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}`;
