import { z } from 'zod';
import { inputError } from '../../core/errors.ts';
import { isRecord, textIn } from '../../core/json.ts';
import type { Message } from '../../core/message.ts';
import { efforts } from '../../core/model.ts';
import type { ExchangeRecord, Random } from '../../core/ports.ts';
import type { AskModel, ModelAnswer, ModelQuestion, ToolSpec } from '../ask-model.ts';
import type { ModelService } from './models.ts';

/** Whose call it is now, and who wants to hear the answer as it comes. */
export type ReplayCall = Pick<ModelQuestion, 'payer' | 'signal' | 'onText'>;

/** Asks the same model the kept question, masked and without a search. Throws where the question is no longer whole. */
export function createReplay({ route, ask, random }: { route: ModelService['route']; ask: AskModel; random: Random }) {
  return async (exchange: ExchangeRecord, call: ReplayCall): Promise<ModelAnswer> => {
    const { payload } = exchange.lines.find(({ kind }) => kind === 'request') ?? {};
    const read = question.safeParse(payload);
    if (!read.success) throw lost('a part of its question is no longer kept, or of a kind that is not known here');
    const { effort, thinkingBudget, messages, ...asked } = read.data;
    const name = `${exchange.provider}:${exchange.model}`;
    const { candidates } = await route({ name, category: 'balanced', needs: {}, allowFallback: false, effort });
    const same = candidates.filter(({ model }) => model.provider === exchange.provider && model.id === exchange.model);
    if (same.length === 0) throw lost(`${name} cannot be asked now`);
    return ask({
      ...call,
      ...asked,
      reqId: random.uuid(),
      tool: 'replay',
      candidates: same.map(candidate => ({ ...candidate, effort, ...(thinkingBudget && { thinkingBudget }) })),
      messages: messages.map(withoutMaskedFacts),
    });
  };
}

const lost = (why: string): Error =>
  inputError(`This exchange cannot be resent: ${why}.`, {
    class: 'replay',
    next: 'Choose another one of "polylogue replay".',
  });

/** A signature in which something looked like a secret is none any more; without one, a thought is left out where it needs one. */
function withoutMaskedFacts({ said, ...message }: Message): Message {
  if (!said) return message;
  const whole = said.map(({ vendor, ...part }) =>
    vendor && !JSON.stringify(vendor).includes('[masked:') ? { ...part, vendor } : part,
  );
  return { ...message, said: whole };
}

/** Whether no part is one that was removed since, in whose place the log has the size alone; what a tool was given may look alike. */
function isKept(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return true;
  const isRemoved = 'missing' in value && /^\d+ bytes/.test(textIn(value.missing)) && Object.keys(value).length === 1;
  return !isRemoved && Object.values(value).every(isKept);
}

/** Polylogue wrote them, though perhaps a later release with kinds of its own. */
const kinds = z.looseObject({
  role: z.enum(['system', 'user', 'assistant']),
  section: z.enum(['preamble', 'turn', 'tail']),
  parts: z.array(z.looseObject({ type: z.enum(['text', 'image']) })),
  said: z.array(z.looseObject({ type: z.enum(['text', 'thought', 'call']) })).optional(),
});

const isMessage = (value: unknown): boolean => kinds.safeParse(value).success && isKept(value);

const question = z.object({
  messages: z.array(z.custom<Message>(isMessage)).min(1),
  maxOutputTokens: z.number(),
  temperature: z.number().optional(),
  effort: z.enum(efforts).optional(),
  thinkingBudget: z.number().optional(),
  tools: z.array(z.custom<ToolSpec>(tool => isRecord(tool) && isKept(tool))).optional(),
  toolChoice: z.literal('none').optional(),
  topP: z.number().optional(),
  program: z.custom<NonNullable<ModelQuestion['program']>>(isRecord).optional(),
});
