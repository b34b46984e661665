import { decode } from 'gpt-tokenizer/encoding/o200k_base';
import type { AnswerStep, BrokenStep, ReportedUsage } from './fake-vendor.ts';
import { o200kTokens } from './o200k-tokens.ts';
import { tokensOf } from './prompt.ts';
import type { FakeCall } from './tool-calls.ts';
import { type FoundPage, found } from './web-search.ts';

/** An answer, before it is put into the words of a dialect. */
export interface Reply {
  /** Ends the ids that the vendor gives it. */
  id: string;
  model: string;
  /** Epoch seconds. */
  created: number;
  text: string;
  /** The text in the pieces of a stream; empty for an empty text. */
  chunks: string[];
  reasoning: string;
  finish: 'stop' | 'length' | 'content_filter' | 'pause' | 'full';
  usage: ReportedUsage;
  /** What its search found; empty where it did not search. */
  pages: readonly FoundPage[];
  /** Tools that it calls, after its text. */
  calls: readonly FakeCall[];
}

export interface ReplyFacts {
  id: string;
  model: string;
  created: number;
  /** The text as the step wants it. */
  text: string;
  input: number;
  cacheRead: number;
  cacheWrite: number;
  maxOutput?: number;
  /** The request lets the model search. */
  searches?: boolean;
  calls?: readonly FakeCall[];
}

/** Counts and cuts what a step wants to say, as the vendor would for this request. */
export function makeReply(step: AnswerStep | BrokenStep, facts: ReplyFacts): Reply {
  const plan: AnswerStep = 'fault' in step ? {} : step;
  const reasoning = plan.reasoning ?? '';
  const thought = o200kTokens(reasoning).length;
  const wanted = tokensOf(facts.text);
  const room = Math.max(0, (facts.maxOutput ?? Number.POSITIVE_INFINITY) - thought);
  const cut = wanted.length > room;
  const called = (facts.calls ?? []).reduce((sum, call) => sum + o200kTokens(call.name + call.text).length, 0);
  const text = cut ? wholeCharacters(decode(wanted.slice(0, room))) : facts.text;
  return {
    id: facts.id,
    model: facts.model,
    created: facts.created,
    text,
    chunks: inChunks(text, plan.chunks),
    reasoning,
    pages: found(step, facts.searches ?? false),
    calls: facts.calls ?? [],
    finish: plan.finish ?? (cut ? 'length' : 'stop'),
    usage: {
      input: facts.input,
      output: thought + Math.min(wanted.length, room) + called,
      reasoning: thought,
      cacheRead: facts.cacheRead,
      cacheWrite: facts.cacheWrite,
      ...plan.usage,
    },
  };
}

/** A text cut between two tokens may end in the middle of a character. */
function wholeCharacters(text: string): string {
  return text.replace(/\uFFFD+$/u, '');
}

function inChunks(text: string, chunks: number | undefined): string[] {
  const points = Array.from(text);
  const count = Math.max(1, chunks ?? Math.min(40, Math.ceil(points.length / 24)));
  const pieces = Array.from({ length: count }, (_, at) => {
    const from = Math.floor((at * points.length) / count);
    return points.slice(from, Math.floor(((at + 1) * points.length) / count)).join('');
  });
  return pieces.filter(piece => piece !== '');
}
