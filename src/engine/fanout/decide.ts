import { nameOf } from '../modes/ask-many/ask-each.ts';
import { modelName } from '../modes/ask-many/seats.ts';
import { refuseUnprefixed, takeNamed } from '../modes/ask-many/slots.ts';
import { chooseSynthesizer } from '../panel/choose.ts';
import { askingFor, askSlot } from './ask-slot.ts';
import type { Fan, Outcome, Response, Slot } from './fan.ts';
import type { WrapperShape } from './shape.ts';

const field = 'ceo_model';

/** Who decides: the named model, else one that is not on the board, else the best of the board. Throws when it can't be asked. */
export async function takeDecider(fan: Fan, { category }: WrapperShape, board: readonly Slot[]): Promise<Slot> {
  const { options, call } = fan;
  const request = { category, needs: {}, effort: call.common.effort };
  const name = call.args[field];
  if (typeof name === 'string') {
    await refuseUnprefixed(options, field, [name], request);
    const [slot] = await takeNamed(options, [name], request);
    if (slot && 'candidates' in slot.who) return slot;
    if (slot && 'failure' in slot.who) throw slot.who.failure;
  }
  const candidates = await chooseSynthesizer(options.route, undefined, board, request);
  if (!candidates) throw new TypeError('a board with a model has one that can decide');
  return { requested: modelName(candidates[0]), who: { candidates }, warnings: [] };
}

export async function decide(fan: Fan, slot: Slot, prompt: string): Promise<Outcome> {
  const { progress } = fan.call;
  progress.stage(`${nameOf(slot)} decides`);
  const outcome = await askSlot(fan, slot, askingFor(fan, prompt));
  progress.stage(`${nameOf(slot, outcome)} ${'answer' in outcome ? 'decided' : 'failed'}`);
  return outcome;
}

/** What the deciding model reads: its task, the question, each answer with its model, and who is absent and why. */
export function decisionPrompt(task: string, question: string, board: readonly Response[]): string {
  const members = board.map(({ slot, outcome }) => {
    const model = attribute(nameOf(slot, outcome));
    if ('error' in outcome) return `  <absent model="${model}">${escaped(outcome.error.message)}</absent>`;
    return `  <response model="${model}">${literal(outcome.answer.text)}</response>`;
  });
  return [
    '<decision-request>',
    `<task>${literal(task)}</task>`,
    `<question>${literal(question)}</question>`,
    '<board>',
    ...members,
    '</board>',
    '</decision-request>',
    '',
  ].join('\n');
}

/** A text that can't close the element around it, readable as it is. */
function literal(text: string): string {
  return `<![CDATA[\n${text.replaceAll(']]>', ']]]]><![CDATA[>')}\n]]>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function attribute(text: string): string {
  return escaped(text).replaceAll('"', '&quot;');
}
