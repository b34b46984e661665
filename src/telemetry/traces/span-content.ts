import type { Attributes } from '@opentelemetry/api';
import { isRecord, textIn } from '../../core/json.ts';
import type { CommsNote, Mask, TellComms } from '../../core/ports.ts';
import { safeCut } from '../../core/text.ts';
import { type Attempt, finishReason } from '../../observability/call-spans.ts';

export interface SpanContent {
  /** Takes what is said, unmasked, until its attempt is over. */
  tell: TellComms;
  /** The texts of an attempt, masked, as OpenTelemetry has messages. */
  of(attempt: Attempt): Promise<Attributes>;
  forget(reqId: string): void;
}

/** Calls whose texts wait for the end of their attempts; the oldest go first. */
const mostCalls = 500;
/** Characters of one text in a span: collectors refuse spans of megabytes. */
const longestText = 16_384;

export function createSpanContent(mask: Mask): SpanContent {
  const waiting = new Map<string, CommsNote[]>();

  /** Takes the notes of an attempt out of what waits; several seats of a panel may be the same model, and then come in turn. */
  const take = ({ reqId, provider, model, attempt }: Attempt): CommsNote[] => {
    const notes = waiting.get(reqId) ?? [];
    const first = notes.find(
      ({ payload, ...note }) =>
        note.provider === provider && note.model === model && isRecord(payload) && payload.attempt === attempt,
    );
    const taken = first ? notes.filter(({ exchange }) => exchange === first.exchange) : [];
    waiting.set(
      reqId,
      notes.filter(note => !taken.includes(note)),
    );
    return taken;
  };

  const part = async (text: string) => ({
    type: 'text',
    content: safeCut((await mask(text, 'log')).text, longestText),
  });

  const inputOf = async (payload: object): Promise<Attributes> => {
    const messages = isRecord(payload) && Array.isArray(payload.messages) ? payload.messages.filter(isRecord) : [];
    const shown = await Promise.all(
      messages.map(async ({ role, parts }) => ({ role, parts: await Promise.all(textsOf(parts).map(part)) })),
    );
    return { 'gen_ai.input.messages': JSON.stringify(shown) };
  };

  const outputOf = async (payload: object): Promise<Attributes> => {
    const { text, finish } = isRecord(payload) ? payload : {};
    const reason = isRecord(finish) ? finishReason(textIn(finish.kind)) : 'error';
    const shown = [{ role: 'assistant', parts: [await part(textIn(text))], finish_reason: reason }];
    return { 'gen_ai.output.messages': JSON.stringify(shown) };
  };

  return {
    tell(note) {
      const notes = waiting.get(note.reqId) ?? [];
      notes.push(note);
      waiting.set(note.reqId, notes);
      for (const oldest of waiting.keys()) {
        if (waiting.size <= mostCalls) break;
        waiting.delete(oldest);
      }
    },
    async of(attempt) {
      const notes = take(attempt);
      const all = await Promise.all(
        notes.map(({ direction, payload }) => (direction === 'out' ? inputOf(payload) : outputOf(payload))),
      );
      return Object.assign({}, ...all);
    },
    forget: reqId => void waiting.delete(reqId),
  };
}

function textsOf(parts: unknown): string[] {
  return Array.isArray(parts)
    ? parts.filter(isRecord).flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
    : [];
}
