import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';

type Controller = TransformStreamDefaultController<LanguageModelV4StreamPart>;

const opening = '<think>';
const closing = '</think>';
/** More white space than this is not kept back: it may never end. */
const longestStart = 1_000;

/**
 * The same model, with the thoughts that some servers write in front of the answer, as `<think>…</think>`, told as
 * reasoning. Later tags are text: an answer may speak of them.
 */
export function withThoughtsApart(model: LanguageModelV4): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: options => model.doGenerate(options),
    async doStream(options: LanguageModelV4CallOptions) {
      const result = await model.doStream(options);
      return { ...result, stream: result.stream.pipeThrough(thoughtsApart()) };
    },
  };
}

/** `start`: nothing but white space so far. `thoughts`: inside of the tags. `gap`: the white space behind them. */
type Place = 'start' | 'thoughts' | 'gap' | 'text';

function thoughtsApart(): TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart> {
  let place: Place = 'start';
  /** Came, but may be half of a tag. */
  let held = '';
  let id = '0';

  const tell = (kind: 'text' | 'reasoning', delta: string, controller: Controller) => {
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
    else if (place === 'start' && (held.length > longestStart || !opening.startsWith(held.trimStart()))) place = 'text';
    if (place === 'thoughts') {
      const end = held.indexOf(closing);
      const upTo = end === -1 ? held.length - halfTag(held, closing) : end;
      tell('reasoning', held.slice(0, upTo), controller);
      held = held.slice(end === -1 ? upTo : end + closing.length);
      if (end !== -1) speak(controller);
    }
    if (place === 'gap') {
      held = held.trimStart();
      if (held !== '') place = 'text';
    }
    if (place === 'text') {
      tell('text', held, controller);
      held = '';
    }
  }

  /** What is still held when the block ends was no tag. */
  function close(controller: Controller): void {
    tell(place === 'thoughts' ? 'reasoning' : 'text', held, controller);
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
