import type { Gathered } from '../../calls/call-record.ts';
import type { PanelShape } from '../../calls/tool.ts';
import { inParallel } from '../../core/concurrency.ts';
import { type Message, tailHeading } from '../../core/message.ts';
import { tokensPerMessage } from '../../core/tokens.ts';
import { consult, type Outcome, type Session, tokensOf } from '../modes/ask-many/consult.ts';
import { tailFor } from '../modes/ask-many/panel-prompts.ts';
import { complaintOf, type Voice, verdictOf } from '../modes/ask-many/voice.ts';
import { type Labelled, sideBySide, unnamed } from '../verdicts/unnamed.ts';

/** How many models are asked at the same time. */
export const atOnce = 5;

/**
 * The second round: each model that gave a verdict sees those of the others, by letters instead of names, and gives its own
 * anew. The prompt goes on from the first one, so that vendors' caches take the files. A model that fails keeps its verdict.
 */
export async function revise(
  session: Session,
  shape: PanelShape,
  voices: readonly Voice[],
  tell: (voice: Voice) => void,
): Promise<Voice[]> {
  const seats = voices.map(({ seat }) => seat);
  const proposal = voices.find(({ prompt }) => prompt)?.prompt?.plan.contribution ?? '';
  const texts = voices.flatMap((voice): Labelled[] => {
    const verdict = verdictOf(voice);
    return verdict ? [{ label: voice.seat.label, text: unnamed(verdict.text, seats, proposal) }] : [];
  });
  if (texts.length < 2) return [...voices];
  let sharers = texts.length;
  const questions = voices.map(voice => {
    // Its own verdict too goes without names: what it calls itself must not tell it who else sits there.
    const own = texts.find(({ label }) => label === voice.seat.label);
    if (!voice.prompt || !own) return undefined;
    const others = texts.filter(({ label }) => label !== voice.seat.label);
    const { candidates, budget } = voice.prompt;
    const messages = secondPrompt(shape, voice, { prompt: voice.prompt, own: own.text, others });
    return consult(session, { candidates, messages, maxOutputTokens: budget.answer, sharers: sharers-- });
  });
  return inParallel([...voices.entries()], atOnce, async ([index, voice]) => {
    const ask = questions[index];
    if (!ask) return voice;
    const revised = after(voice, await ask());
    tell(revised);
    return revised;
  });
}

function after(voice: Voice, outcome: Outcome): Voice {
  const next = { ...voice, outcome, round: voice.round + 1 };
  return verdictOf(next) ? next : { ...voice, notRevised: complaintOf(next) };
}

function secondPrompt(
  shape: PanelShape,
  { seat }: Voice,
  { prompt, own, others }: { prompt: Gathered; own: string; others: readonly Labelled[] },
): Message[] {
  const first = prompt.messages.filter(({ section }) => section !== 'tail');
  const tail = `${tailHeading}\n${shape.review}\n\n${tailFor(shape, seat)}`;
  const ownTurn: Message = { role: 'assistant', section: 'turn', parts: [{ type: 'text', text: own }] };
  const fixed = [...first, ownTurn, message('tail', tail)];
  const { window } = prompt.candidates[0].model;
  const used = tokensOf(fixed, prompt.candidates[0]) + (fixed.length + 1) * tokensPerMessage + prompt.budget.answer;
  return [...first, ownTurn, message('turn', sideBySide(others, (window - used) / 1.5)), message('tail', tail)];
}

function message(section: Message['section'], text: string): Message {
  return { role: 'user', section, parts: [{ type: 'text', text }] };
}
