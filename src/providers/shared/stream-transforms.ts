import type * as sdk from '@ai-sdk/provider';
import type { WebSearch } from '../../models/ask-model.ts';
import type { Connection } from '../../models/provider.ts';

/** What the AI SDK's streams are made of. */
export type Part = sdk.LanguageModelV4StreamPart;

/** What the AI SDK asks a model with. */
export type CallOptions = sdk.LanguageModelV4CallOptions;

/** A vendor's own search as a tool, where the model may search. */
export const searchTool =
  (
    id: `${string}.${string}`,
    args: (search: WebSearch) => Record<string, unknown> = () => ({}),
    name = 'web_search',
  ): NonNullable<Connection['vendorTools']> =>
  ({ webSearch }) =>
    webSearch ? [{ type: 'provider', id, name, args: args(webSearch) }] : [];

/** A model that is only asked for streams: one of our own, or the same one asked in another way. */
export function streamingModel(
  { provider, modelId }: Pick<sdk.LanguageModelV4, 'provider' | 'modelId'>,
  doStream: sdk.LanguageModelV4['doStream'],
): sdk.LanguageModelV4 {
  const doGenerate = () => Promise.reject(new TypeError('models are only asked for streams'));
  return { specificationVersion: 'v4', provider, modelId, supportedUrls: {}, doGenerate, doStream };
}

/** The same model, each call of which is changed before the vendor's package sees it. */
export const adjustedModel = (
  model: sdk.LanguageModelV4,
  adjust: (options: CallOptions) => CallOptions,
): sdk.LanguageModelV4 => streamingModel(model, options => model.doStream(adjust(options)));

/** The same model, whose refusals become what `told` makes of them. */
export const withErrors = (model: sdk.LanguageModelV4, told: (error: unknown) => unknown): sdk.LanguageModelV4 =>
  streamingModel(model, async options => {
    try {
      return await model.doStream(options);
    } catch (error) {
      throw told(error);
    }
  });

/** The same model, each of whose streams goes through a transform of its own. */
export const transformedModel = (
  model: sdk.LanguageModelV4,
  transform: (options: CallOptions) => TransformStream<Part, Part>,
): sdk.LanguageModelV4 =>
  streamingModel(model, async options => {
    const result = await model.doStream(options);
    return { ...result, stream: result.stream.pipeThrough(transform(options)) };
  });

/** The same model, each part of whose streams becomes what the map of that stream makes of it. */
export const mappedParts = (model: sdk.LanguageModelV4, mapping: (options: CallOptions) => (part: Part) => Part[]) =>
  transformedModel(model, options => {
    const map = mapping(options);
    return new TransformStream({
      transform(part, controller) {
        for (const mapped of map(part)) controller.enqueue(mapped);
      },
    });
  });

type Controller = TransformStreamDefaultController<Part>;

const opening = '<think>';

const closing = '</think>';

/** More white space than this is not kept back: it may never end. */
const maxTagLength = 1_000;

/** The model, with thoughts that servers write first as `<think>…</think>` told as reasoning; later tags are text. */
export const withThoughtsApart = (model: sdk.LanguageModelV4) => transformedModel(model, thoughtsApart);

/** The same model, told its earlier thoughts as it wrote them: in tags, in front of its text and its calls. */
export const withThoughtsInText = (model: sdk.LanguageModelV4): sdk.LanguageModelV4 =>
  adjustedModel(model, options => ({ ...options, prompt: options.prompt.map(thoughtsInText) }));

function thoughtsInText(message: sdk.LanguageModelV4Message): sdk.LanguageModelV4Message {
  if (message.role !== 'assistant') return message;
  const thoughts = message.content.flatMap(part => (part.type === 'reasoning' ? [part.text] : []));
  const rest = message.content.filter(({ type }) => type !== 'reasoning');
  const texts = thoughts.map(text => ({ type: 'text' as const, text: `${opening}${text}${closing}\n\n` }));
  return { ...message, content: [...texts, ...rest] };
}

function thoughtsApart(): TransformStream<Part, Part> {
  /** `start`: nothing but white space so far. `thoughts`: inside of the tags. `gap`: the white space behind them. */
  let place: 'start' | 'thoughts' | 'gap' | 'text' = 'start';
  /** Came, but may be half of a tag. */
  let held = '';
  let id = '0';

  const enqueue = (kind: 'text' | 'reasoning', delta: string, controller: Controller) => {
    if (delta !== '') controller.enqueue({ type: `${kind}-delta`, id: kind === 'text' ? id : `${id}-thoughts`, delta });
  };
  const think = (controller: Controller) => {
    place = 'thoughts';
    held = held.trimStart().slice(opening.length);
    controller.enqueue({ type: 'reasoning-start', id: `${id}-thoughts` });
  };
  const speak = (controller: Controller) => {
    place = 'gap';
    controller.enqueue({ type: 'reasoning-end', id: `${id}-thoughts` });
  };

  function take(controller: Controller): void {
    if (place === 'start' && held.trimStart().startsWith(opening)) think(controller);
    else if (place === 'start' && (held.length > maxTagLength || !opening.startsWith(held.trimStart()))) place = 'text';
    if (place === 'thoughts') {
      const end = held.indexOf(closing);
      const upTo = end === -1 ? held.length - halfTag(held, closing) : end;
      enqueue('reasoning', held.slice(0, upTo), controller);
      held = held.slice(end === -1 ? upTo : end + closing.length);
      if (end !== -1) speak(controller);
    }
    if (place === 'gap') {
      held = held.trimStart();
      if (held !== '') place = 'text';
    }
    if (place === 'text') {
      enqueue('text', held, controller);
      held = '';
    }
  }

  /** What is still held when the block ends was no tag. */
  function close(controller: Controller): void {
    enqueue(place === 'thoughts' ? 'reasoning' : 'text', held, controller);
    if (place === 'thoughts') speak(controller);
    held = '';
  }

  return new TransformStream({
    transform(part, controller) {
      if (part.type === 'text-delta') {
        id = part.id;
        held += part.delta;
        return take(controller);
      }
      if (part.type === 'text-end' || part.type === 'error' || part.type === 'finish') close(controller);
      controller.enqueue(part);
    },
    flush: close,
  });
}

/** Characters at the end of the text that may be the beginning of the tag. */
function halfTag(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
