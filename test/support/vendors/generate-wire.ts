import { geminiSignature } from './check-tools.ts';
import { googleStatusBody } from './google-refusal.ts';
import type { Reply } from './reply.ts';
import type { Frame, Wire } from './wire.ts';
import { recordOf } from './wire-values.ts';

type Value = Record<string, unknown>;

const finishReasons = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  content_filter: 'SAFETY',
  pause: 'STOP',
  full: 'MAX_TOKENS',
};
const harmful = [{ category: 'HARM_CATEGORY_DANGEROUS_CONTENT', probability: 'HIGH', blocked: true }];

/**
 * An answer of `:generateContent` or `:streamGenerateContent` to the request with this body. A filtered answer without any
 * text is a prompt that was blocked: then there is no candidate at all.
 */
export function generateWire(body: Value, reply: Reply): Wire {
  const { includeThoughts } = recordOf(recordOf(body.generationConfig).thinkingConfig);
  const shown = includeThoughts === true ? reply.reasoning : '';
  const blocked = reply.finish === 'content_filter' && reply.text === '';
  const around = { modelVersion: reply.model, responseId: `resp_${reply.id}` };
  const thoughts = shown === '' ? [] : [{ text: shown, thought: true }];
  const signature = reply.reasoning === '' ? {} : { thoughtSignature: geminiSignature(reply.reasoning) };
  // Of parallel calls only the first one bears a signature.
  const called = reply.calls.map(({ name, args }, index) => ({
    functionCall: { name, args },
    ...(index === 0 && { thoughtSignature: geminiSignature(name) }),
  }));

  const candidate = (parts: Value[], rest: Value = {}): Value => ({
    candidates: [{ content: { parts, role: 'model' }, ...rest, index: 0 }],
  });
  const begun = { promptTokenCount: reply.usage.input, totalTokenCount: reply.usage.input };
  const chunk = (value: Value, usage: Value = begun): Frame => ({
    data: { ...value, usageMetadata: usage, ...around },
  });
  const ending = {
    finishReason: finishReasons[reply.finish],
    ...(reply.finish === 'content_filter' && { safetyRatings: harmful }),
    ...(reply.pages.length > 0 && { groundingMetadata: groundingOf(reply) }),
  };
  const feedback = { promptFeedback: { blockReason: 'SAFETY', safetyRatings: harmful } };

  return {
    open: () => (blocked || shown === '' ? [] : [chunk(candidate(thoughts))]),
    text: piece => chunk(candidate([{ text: piece }])),
    close: () => [
      ...(called.length > 0 ? [chunk(candidate(called))] : []),
      blocked ? chunk(feedback) : chunk(candidate([{ text: '', ...signature }], ending), usageOf(reply)),
    ],
    fail: () => [{ data: recordOf(googleStatusBody(503)) }],
    whole: () => ({
      ...(blocked ? feedback : candidate([...thoughts, { text: reply.text, ...signature }, ...called], ending)),
      usageMetadata: blocked ? begun : usageOf(reply),
      ...around,
    }),
  };
}

/** Pages stand behind addresses of the vendor's own; which words rest on which page is told by places in the answer. */
function groundingOf({ pages, text }: Reply): Value {
  const cited = pages.flatMap(({ quote }, index) => (quote === undefined ? [] : [index]));
  return {
    webSearchQueries: ['what is new'],
    searchEntryPoint: { renderedContent: '<div>what is new</div>' },
    groundingChunks: pages.map(({ url, title }) => ({ web: { uri: url, title } })),
    groundingSupports: cited.map(index => ({
      segment: { startIndex: 0, endIndex: text.length, text },
      groundingChunkIndices: [index],
    })),
  };
}

/** Thoughts are no part of the candidates' tokens there; what was cached is part of the prompt's. */
function usageOf({ usage }: Reply): Value {
  return {
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output - usage.reasoning,
    totalTokenCount: usage.input + usage.output,
    ...(usage.cacheRead > 0 && { cachedContentTokenCount: usage.cacheRead }),
    ...(usage.reasoning > 0 && { thoughtsTokenCount: usage.reasoning }),
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }],
  };
}
