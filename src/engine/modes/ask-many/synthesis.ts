import { objectIn } from '../../../calls/reply.ts';
import type { PanelMode } from '../../../calls/tool.ts';
import type { JsonObject } from '../../../core/json.ts';
import { type Message, tailHeading } from '../../../core/message.ts';
import type { Candidate } from '../../../core/model.ts';
import { estimateTokens, tokenFactor } from '../../../core/tokens.ts';
import { planBudget } from '../../../threads/compaction.ts';
import { said } from '../../../threads/transcript.ts';
import type { Candidates, TargetOutcome } from './ask-many.ts';
import { type PanelRun, readyQuestion } from './panel-prompts.ts';
import { anonymousVerdicts, type PanelistResponse, sideBySide, type Tally } from './verdicts.ts';

/** What the verdicts come to, in the words of the model that brought them together. */
export interface Synthesis {
  recommendation?: string;
  agreement: string[];
  disagreement: string[];
  minorityView?: string;
  nextSteps: string[];
  /** The answer as it stands, where it was not in the form that was asked for. */
  text?: string;
}

/** Asks one model, that need not be on the panel, what the verdicts have in common and where they part. */
export async function synthesize(
  run: PanelRun,
  mode: PanelMode,
  {
    candidates,
    responses,
    proposal,
    tally,
  }: { candidates: Candidates; responses: readonly PanelistResponse[]; proposal: string; tally: Tally },
): Promise<{ outcome: TargetOutcome; synthesis?: Synthesis }> {
  const verdicts = anonymousVerdicts(responses, proposal);
  const { preamble } = run.services;
  const tail = [tailHeading, mode.synthesis, facts(responses, tally)].join('\n');
  const tokens = [preamble, proposal, tail].reduce((sum, text) => sum + estimateTokens(text), 100);
  const promptFor = async ({ model: { id, window, maxOutput } }: Candidate) => {
    const budget = planBudget({ window, maxOutput, reserved: Math.ceil(tokens * tokenFactor(id)) });
    const question = `The proposal, as it was put to each expert:\n\n${proposal}\n\n${sideBySide(verdicts, budget.rest / 1.5)}`;
    const messages: Message[] = [
      { ...said('system', 'preamble', preamble), cacheMark: true },
      said('user', 'turn', question),
      said('user', 'tail', tail),
    ];
    return { messages, maxOutputTokens: budget.answer };
  };
  const prompt = await promptFor(candidates[0]);
  const outcome = await (await readyQuestion(run, { candidates, ...prompt, promptFor, wholeOnly: true })).ask();
  return outcome.status === 'success' ? { outcome, synthesis: synthesisIn(outcome.answer.text) } : { outcome };
}

/** What was counted, so that nobody has to count again: and no minority view is lost. */
function facts(responses: readonly PanelistResponse[], { positions, minority, mean }: Tally): string {
  const sides = responses.flatMap(({ target: { label, stance } }) =>
    stance === 'neutral' ? [] : [`Expert ${label} was told to argue ${stance} it`],
  );
  return [
    ...[...positions].map(
      ([position, labels]) => `Position "${position}": ${labels.map(label => `Expert ${label}`).join(', ')}.`,
    ),
    ...(sides.length > 0 ? [`${sides.join('; ')}.`] : []),
    ...(minority.length > 0
      ? [`In the minority: ${minority.map(label => `Expert ${label}`).join(', ')}. Keep what they hold.`]
      : []),
    ...(mean === undefined ? [] : [`Their confidence is ${mean} of 10 on average.`]),
  ].join('\n');
}

/** The object that was asked for; anything else is kept as it stands. */
function synthesisIn(text: string): Synthesis {
  const object = objectIn(text);
  const recommendation = wordsOf(object?.recommendation);
  const agreement = listOf(object?.agreement);
  const disagreement = listOf(object?.disagreement);
  if (!object || (!recommendation && agreement.length + disagreement.length === 0)) {
    return { agreement: [], disagreement: [], nextSteps: [], text: text.trim() };
  }
  const minorityView = wordsOf(object.minority_view);
  return {
    ...(recommendation && { recommendation }),
    agreement,
    disagreement,
    ...(minorityView && { minorityView }),
    nextSteps: listOf(object.next_steps),
  };
}

function wordsOf(value: unknown): string {
  if (Array.isArray(value)) return listOf(value).join(' ');
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value.trim() : JSON.stringify(value);
}

function listOf(value: unknown): string[] {
  const items = Array.isArray(value) ? value : [value];
  return items.map(wordsOf).filter(item => item !== '');
}

export function synthesisDocument({
  recommendation,
  agreement,
  disagreement,
  minorityView,
  nextSteps,
  text,
}: Synthesis): JsonObject {
  return { text, recommendation, agreement, disagreement, minority_view: minorityView, next_steps: nextSteps };
}
