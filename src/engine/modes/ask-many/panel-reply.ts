import { openExchange, reportFiles, type StoredAnswer, storeAnswer } from '../../../calls/ask/ask.ts';
import type { PreparedCall } from '../../../calls/call-record.ts';
import { fitTexts } from '../../../calls/format-reply.ts';
import { continuationOffer, fileFacts, objectIn, type Reply, roundedCost, successReply } from '../../../calls/reply.ts';
import type { JsonObject } from '../../../core/json.ts';
import { type Message, tailHeading } from '../../../core/message.ts';
import type { Candidate, Candidates, ModelInfo } from '../../../core/model.ts';
import type { PanelistRecord } from '../../../core/thread.ts';
import { estimateTokens, tokenFactor } from '../../../core/tokens.ts';
import type { ModelAnswer } from '../../../models/ask-model.ts';
import { planBudget } from '../../../threads/compaction.ts';
import { asMessage } from '../../../threads/transcript.ts';
import { nameOf, runMetadata, type TargetOutcome } from './ask-many.ts';
import { type PanelRun, readyQuestion, storedTurn } from './panel-prompts.ts';
import { type Panelist, panelistName } from './panelists.ts';
import type { PanelistResponse, Tally } from './verdicts.ts';
import {
  anonymousVerdicts,
  askedInstead,
  panelistRecord,
  responseOf,
  sideBySide,
  verdictOf,
  verdictsIn,
  whyNoVerdict,
} from './verdicts.ts';

/** Makes the question durable before anybody is paid to answer it. */
export async function storePanelQuestion(run: PanelRun, content: string, panelists: readonly Panelist[]) {
  const prompts = promptsOf(panelists);
  // Told once for the call, though each model's prompt was made by itself.
  if (prompts[0]) reportFiles(run.services, prompts[0]);
  const { turn, blobs } = storedTurn(run, content, prompts);
  const { thread } = run.call;
  await openExchange(run.exchange, { thread, turn, sent: thread.turns.length + 1 }, { blobs });
}

const promptsOf = (panelists: readonly Panelist[]): PreparedCall[] => panelists.flatMap(({ prompt }) => prompt ?? []);

/** Stores what a panel came to, with what all its answers took; `answer`: the one that the turn goes by. */
export function storePanelAnswer(run: PanelRun, answer: ModelAnswer | undefined, stored: StoredAnswer) {
  const { usage, costUsd } = run.spent;
  const { effort, thinkingBudget } = answer?.candidate ?? {};
  return storeAnswer(run.exchange, run.call, {
    modelProvider: answer?.model.provider,
    modelName: answer?.model.id,
    ...stored,
    modelMetadata: { usage, costUsd: roundedCost(costUsd), effort, thinkingBudget, ...stored.modelMetadata },
    tokens: usage.input + usage.output,
    costUsd,
  });
}

/** What every reply of a panel says of itself, beside the mode's own facts; `used`: the model that it goes by. */
export function panelMetadata(run: PanelRun, prompts: PreparedCall[], warnings: string[], used?: Partial<ModelInfo>) {
  const files = prompts.toSorted((a, b) => b.files.embedded.length - a.files.embedded.length)[0]?.files;
  return {
    ...runMetadata(run, [...prompts.flatMap(prompt => prompt.warnings), ...warnings]),
    workflow_type: 'multi_model_consensus',
    files: files && fileFacts(files),
    model_used: used?.id,
    provider_used: used?.provider,
  };
}

export interface PanelResult {
  responses: readonly PanelistResponse[];
  tally: Tally;
  /** Who was asked to bring the verdicts together, and how that ended. */
  synthesizer?: { name: string; outcome: TargetOutcome };
  synthesis?: Synthesis;
}

/** Stores what the panel came to, whole and readable, and answers with as much of it as a reply holds. */
export async function panelReply(run: PanelRun, result: PanelResult): Promise<Reply> {
  const { services, call } = run;
  const { responses, synthesizer } = result;
  const answer = synthesizer?.outcome.status === 'success' ? synthesizer.outcome.answer : undefined;
  const asked = responses.filter(({ outcome }) => outcome.status !== 'skipped').map(nameOf);
  if (synthesizer && synthesizer.outcome.status !== 'skipped') asked.push(synthesizer.name);
  const { content, records: kept } = turnText(result);
  const ended = await storePanelAnswer(run, answer, {
    content,
    modelMetadata: {
      latencyMs: Math.round(services.clock.monotonic() - call.startedAt),
      asked: [...new Set(asked)],
      voices: kept,
    },
  });
  const warnings = [...responses.flatMap(warningsOf), ...ended.warnings];
  const panelists = responses.map(({ target }) => target);
  const names = panelists.map(panelistName);
  const envelope: JsonObject = {
    ...bodyOf(result),
    continuation_offer: continuationOffer(ended.thread, services.maxTurns, ended.thread.turns.length),
    metadata: {
      ...panelMetadata(run, promptsOf(panelists), warnings, answer?.model),
      models_consulted: names,
      total_models: names.length,
    },
  };
  const place = { thread: ended.thread.id, seq: ended.turn.seq };
  return successReply(fitting(envelope, result, place, services.replyTokens));
}

function warningsOf({ target, outcome }: PanelistResponse): string[] {
  const own = outcome.status === 'success' ? outcome.answer.warnings : [];
  return [...target.warnings, ...own].map(warning => `${target.model}: ${warning}`);
}

function bodyOf(result: PanelResult): JsonObject {
  const { responses, tally, synthesizer, synthesis } = result;
  const verdicts = verdictsIn(responses);
  const asked = verdicts.length === 0 ? responses.map(askedInstead).find(each => each !== undefined) : undefined;
  return {
    status: asked?.status ?? (verdicts.length === responses.length ? 'consensus_complete' : 'partial'),
    content: asked && JSON.stringify(asked.object),
    content_type: asked && 'json',
    consensus: {
      ...synthesis,
      confidence: { level: tally.level, score: tally.mean, lowest: tally.lowest, highest: tally.highest },
      positions: Object.fromEntries([...tally.positions].map(([position, labels]) => [position, [...labels]])),
      minority: minorityOf(result).map(({ target, facts }) => ({
        expert: target.label,
        model: target.model,
        position: facts.position,
        verdict: facts.short,
      })),
      synthesizer: synthesizer && {
        model: synthesizer.name,
        status: synthesizer.outcome.status,
        error: synthesizer.outcome.status === 'error' ? synthesizer.outcome.error.message : undefined,
        reason: synthesizer.outcome.status === 'skipped' ? synthesizer.outcome.error.message : undefined,
      },
    },
    skipped_for_cost: skippedForCost(result),
    next_steps: synthesis
      ? 'Check the synthesis against the verdicts, present the agreement and the minority view to the user, then decide.'
      : 'No synthesis was made: summarize where the verdicts agree and differ, including minority views, and what follows.',
  };
}

const minorityOf = ({ responses, tally }: PanelResult) =>
  verdictsIn(responses).filter(({ target }) => tally.minority.includes(target.label));

function skippedForCost({ responses, synthesizer }: PanelResult): string[] | undefined {
  const isDear = (outcome: TargetOutcome) => outcome.status === 'skipped' && outcome.because === 'cost';
  const names = responses.filter(({ outcome }) => isDear(outcome)).map(({ target }) => panelistName(target));
  const all = synthesizer && isDear(synthesizer.outcome) ? [...names, `${synthesizer.name} (synthesis)`] : names;
  return all.length > 0 ? all : undefined;
}

/** The reply with all verdicts, or, where they are too long, with their beginnings and the place of the rest. */
function fitting(whole: JsonObject, { responses }: PanelResult, place: { thread: string; seq: number }, limit: number) {
  const { status, consensus, ...rest } = whole;
  const texts = responses.map(({ outcome }) => (outcome.status === 'success' ? outcome.answer.text : ''));
  const total = texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  return fitTexts(texts, limit, shown => {
    const isCut = texts.some((text, index) => shown[index] !== text);
    const entries = responses.map((response, index) =>
      entryOf(response, shown[index] === texts[index] ? (texts[index] ?? '') : `${shown[index]}… [cut]`),
    );
    const truncated = {
      total_tokens: total,
      artifact: `polylogue://threads/${place.thread}/turns/${place.seq}`,
      next_cursor: `${place.seq}:0`,
      note: 'The whole verdicts: call "threads" with action "read", this continuation_id and next_cursor as cursor.',
    };
    return { status, consensus, responses: entries, ...rest, ...(isCut && { truncated }) };
  });
}

function entryOf(response: PanelistResponse, shown: string): JsonObject {
  const { target, round, notRevised } = response;
  const verdict = verdictOf(response);
  return {
    expert: target.label,
    ...responseOf(response, shown),
    confidence: verdict?.facts.confidence,
    position: verdict?.facts.position,
    round: verdict && round,
    not_revised: notRevised,
    asks_for: askedInstead(response)?.status,
  };
}

/** The assistant's turn: what everybody after it reads, and where in it each response stands. */
function turnText(result: PanelResult): { content: string; records: PanelistRecord[] } {
  const { responses, tally, synthesis, synthesizer } = result;
  const minority = minorityOf(result).map(
    ({ target: { label, model }, facts }) => `- Expert ${label} (${model}): ${facts.short}`,
  );
  const { level, mean, lowest, highest } = tally;
  const numbers = mean === undefined ? '' : `: ${mean} of 10 on average (${lowest} to ${highest})`;
  const sections = [
    section('Recommendation', synthesis?.recommendation ?? synthesis?.text ?? ''),
    section('Agreement', bullets(synthesis?.agreement)),
    section('Disagreement', bullets(synthesis?.disagreement)),
    section('Minority view', [synthesis?.minority_view, ...minority].filter(Boolean).join('\n')),
    section('Confidence', `${level}${numbers}`),
    section('Next steps', bullets(synthesis?.next_steps)),
    synthesis && synthesizer ? `Brought together by ${synthesizer.name}.` : '',
    '## Verdicts',
  ];
  let content = ['# Consensus', ...sections].filter(part => part !== '').join('\n\n');
  const kept = responses.map(response => {
    const { target, outcome } = response;
    content += `\n\n### Expert ${target.label}: ${nameOf(response)} (stance: ${target.stance})\n\n`;
    const from = content.length;
    content += (outcome.status === 'success' ? outcome.answer.text : `No verdict. ${whyNoVerdict(response)}`).trim();
    return panelistRecord(response, from, content.length);
  });
  return { content, records: kept };
}

const section = (title: string, text: string): string => (text === '' ? '' : `## ${title}\n\n${text}`);

const bullets = (items: readonly string[] = []): string => items.map(item => `- ${item}`).join('\n');

/** What the verdicts come to, in the words of the model that brought them together; its keys are those of the reply. */
type Synthesis = ReturnType<typeof synthesisIn>;

/** Asks one model, that need not be on the panel, what the verdicts have in common and where they part. */
export async function synthesize(run: PanelRun, proposal: string, result: PanelResult, candidates: Candidates) {
  const { responses, tally } = result;
  const verdicts = anonymousVerdicts(responses, proposal);
  const { preamble } = run.services;
  const tail = [tailHeading, run.mode.synthesis, facts(responses, tally)].join('\n');
  const tokens = [preamble, proposal, tail].reduce((sum, text) => sum + estimateTokens(text), 100);
  const promptFor = async ({ model: { id, window, maxOutput } }: Candidate) => {
    const budget = planBudget({ window, maxOutput, reserved: Math.ceil(tokens * tokenFactor(id)) });
    const question = `The proposal, as it was put to each expert:\n\n${proposal}\n\n${sideBySide(verdicts, budget.rest / 1.5)}`;
    const messages: Message[] = [
      { ...asMessage('system', 'preamble', preamble), cacheMark: true },
      asMessage('user', 'turn', question),
      asMessage('user', 'tail', tail),
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
  const experts = (labels: readonly string[]) => labels.map(label => `Expert ${label}`).join(', ');
  return [
    ...[...positions].map(([position, labels]) => `Position "${position}": ${experts(labels)}.`),
    ...(sides.length > 0 ? [`${sides.join('; ')}.`] : []),
    ...(minority.length > 0 ? [`In the minority: ${experts(minority)}. Keep what they hold.`] : []),
    ...(mean === undefined ? [] : [`Their confidence is ${mean} of 10 on average.`]),
  ].join('\n');
}

/** The object that was asked for; anything else is kept as it stands, in `text`. */
function synthesisIn(answer: string) {
  const object = objectIn(answer);
  const recommendation = wordsOf(object?.recommendation);
  const [agreement, disagreement] = [listOf(object?.agreement), listOf(object?.disagreement)];
  if (recommendation === '' && agreement.length + disagreement.length === 0)
    return { text: answer.trim(), agreement, disagreement, next_steps: [] };
  return {
    recommendation: recommendation || undefined,
    agreement,
    disagreement,
    minority_view: wordsOf(object?.minority_view) || undefined,
    next_steps: listOf(object?.next_steps),
  };
}

function wordsOf(value: unknown): string {
  if (Array.isArray(value)) return listOf(value).join(' ');
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value.trim() : JSON.stringify(value);
}

const listOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).map(wordsOf).filter(item => item !== '');
