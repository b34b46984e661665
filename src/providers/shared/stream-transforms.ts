import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import { type CodeOf, codedError } from './http.ts';

type Part = LanguageModelV4StreamPart;

/** The same model, asked in another way. */
export function changedModel(
  model: LanguageModelV4,
  changes: Pick<LanguageModelV4, 'doStream'> & Partial<Pick<LanguageModelV4, 'doGenerate'>>,
): LanguageModelV4 {
  const { provider, modelId, supportedUrls } = model;
  const doGenerate: LanguageModelV4['doGenerate'] = options => model.doGenerate(options);
  return { specificationVersion: 'v4', provider, modelId, supportedUrls, doGenerate, ...changes };
}

/** A model of our own, which is only asked for streams. */
export function streamingModel(model: Pick<LanguageModelV4, 'provider' | 'modelId' | 'doStream'>): LanguageModelV4 {
  const doGenerate = () => Promise.reject(new TypeError('models are only asked for streams'));
  return { specificationVersion: 'v4', supportedUrls: {}, doGenerate, ...model };
}

/** The same model, each call of which is changed before the vendor's package sees it. */
export function adjustedModel(
  model: LanguageModelV4,
  adjust: (options: LanguageModelV4CallOptions) => LanguageModelV4CallOptions,
): LanguageModelV4 {
  return changedModel(model, {
    doGenerate: options => model.doGenerate(adjust(options)),
    doStream: options => model.doStream(adjust(options)),
  });
}

/** The same model, each of whose streams goes through a transform of its own. */
export function transformedModel(
  model: LanguageModelV4,
  transform: (options: LanguageModelV4CallOptions) => TransformStream<Part, Part>,
): LanguageModelV4 {
  return changedModel(model, {
    async doStream(options) {
      const result = await model.doStream(options);
      return { ...result, stream: result.stream.pipeThrough(transform(options)) };
    },
  });
}

/** The same model, each part of whose streams becomes what the map of that stream makes of it. */
export function mappedParts(
  model: LanguageModelV4,
  mapping: (options: LanguageModelV4CallOptions) => (part: Part) => Part[],
): LanguageModelV4 {
  return transformedModel(model, options => {
    const map = mapping(options);
    return new TransformStream({
      transform(part, controller) {
        for (const mapped of map(part)) controller.enqueue(mapped);
      },
    });
  });
}

/** The same model, whose failures carry codes that the classifier understands. */
export function codedModel(model: LanguageModelV4, codeOf: CodeOf): LanguageModelV4 {
  const coded = async <Result>(asked: PromiseLike<Result>): Promise<Result> => {
    try {
      return await asked;
    } catch (error) {
      throw codedError(error, codeOf);
    }
  };
  const inStream = mappedParts(model, () => part => [
    part.type === 'error' ? { ...part, error: codedError(part.error, codeOf) } : part,
  ]);
  return changedModel(model, {
    doGenerate: options => coded(model.doGenerate(options)),
    doStream: options => coded(inStream.doStream(options)),
  });
}

/**
 * The same model, for packages that tell the end of a stream that was cut as an end like any other: without a reason from the
 * vendor, or with the one that is none, it is told as interrupted.
 */
export function withInterruptedEnds(model: LanguageModelV4): LanguageModelV4 {
  return mappedParts(model, () => part => [part.type === 'finish' ? markInterrupted(part) : part]);
}

type Controller = TransformStreamDefaultController<Part>;

type Finish = Extract<Part, { type: 'finish' }>;

function markInterrupted({ finishReason, usage, ...part }: Finish): Finish {
  return { ...part, finishReason: endOf(finishReason), usage: usage.inputTokens.total ? usage : unknownUsage };
}

/** No prompt has no tokens: counts of zero stand for none. */
const none = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };

const unknownUsage: LanguageModelV4Usage = {
  inputTokens: none,
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};

/** DeepSeek ends an answer for which its machines had no room left in words of its own. */
function endOf({ unified, raw }: LanguageModelV4FinishReason): LanguageModelV4FinishReason {
  const cut = (unified === 'other' && raw === undefined) || raw === 'insufficient_system_resource';
  return { unified: cut ? 'interrupted' : unified, raw };
}

const opening = '<think>';

const closing = '</think>';

/** More white space than this is not kept back: it may never end. */
const maxTagLength = 1_000;

/**
 * The same model, with the thoughts that some servers write in front of the answer, as `<think>…</think>`, told as
 * reasoning. Later tags are text: an answer may speak of them.
 */
export function withThoughtsApart(model: LanguageModelV4): LanguageModelV4 {
  return transformedModel(model, thoughtsApart);
}

/** `start`: nothing but white space so far. `thoughts`: inside of the tags. `gap`: the white space behind them. */
type Place = 'start' | 'thoughts' | 'gap' | 'text';

function thoughtsApart(): TransformStream<Part, Part> {
  let place: Place = 'start';
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
