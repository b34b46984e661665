import { inputError } from '../../domain/error.ts';
import { isRecord, numberIn, textIn } from '../../domain/json.ts';
import type { Message, Part } from '../../domain/message.ts';
import { efforts } from '../../domain/model.ts';
import type { CommsExchange, Random } from '../../domain/ports.ts';
import type { AskModel, ModelAnswer, ModelQuestion } from '../answer.ts';
import type { Team } from '../team.ts';

export interface RepeatParts {
  route: Team['route'];
  ask: AskModel;
  random: Random;
}

/** Whose call it is now, and who wants to hear the answer as it comes. */
export type RepeatCall = Pick<ModelQuestion, 'payer' | 'signal' | 'onText'>;

/**
 * Asks the same model the same question again, as it was kept: secrets stay masked, tools of vendors are left out. Throws an
 * `AppError` also where the question is no longer whole.
 */
export function createRepeat({ route, ask, random }: RepeatParts) {
  return async (exchange: CommsExchange, call: RepeatCall): Promise<ModelAnswer> => {
    const { payload } = exchange.lines.find(({ kind }) => kind === 'request') ?? {};
    if (!payload) throw lost('its question is not in the log any more');
    const messages = messagesIn(payload.messages);
    const effort = efforts.find(each => each === payload.effort);
    const name = `${exchange.provider}:${exchange.model}`;
    const { candidates } = await route({ name, category: 'balanced', needs: {}, allowFallback: false, effort });
    const same = candidates.filter(({ model }) => model.provider === exchange.provider && model.id === exchange.model);
    if (same.length === 0) throw lost(`${name} can't be asked now`);
    const thinkingBudget = numberIn(payload.thinkingBudget) || undefined;
    return ask({
      ...call,
      reqId: random.uuid(),
      tool: 'replay',
      candidates: same.map(candidate => ({ ...candidate, effort, ...(thinkingBudget && { thinkingBudget }) })),
      messages,
      maxOutputTokens: numberIn(payload.maxOutputTokens) || usualOutput,
      temperature: typeof payload.temperature === 'number' ? payload.temperature : undefined,
    });
  };
}

const usualOutput = 8_192;

function lost(why: string): Error {
  return inputError(`This exchange can't be sent again: ${why}.`, {
    class: 'replay',
    next: 'Choose another one of "polylogue replay".',
  });
}

function messagesIn(value: unknown): Message[] {
  const messages = Array.isArray(value) ? value.map(messageIn) : [];
  if (messages.length === 0) throw lost('its messages are not in the log');
  return messages;
}

function messageIn(value: unknown): Message {
  const { role, section, parts, document } = isRecord(value) ? value : {};
  return {
    role: role === 'system' || role === 'assistant' ? role : 'user',
    section: section === 'preamble' || section === 'tail' ? section : 'turn',
    parts: Array.isArray(parts) ? parts.map(partIn) : [],
    ...(document === true && { document: true }),
  };
}

function partIn(value: unknown): Part {
  const { type, text, mediaType, data } = isRecord(value) ? value : {};
  if (type === 'text' && typeof text === 'string') return { type, text };
  if (type === 'image' && data instanceof Uint8Array) return { type, data, mediaType: textIn(mediaType) };
  throw lost('a part of it is no longer kept, or is of a kind that can not be sent again');
}
