import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { askModelTurn, type Finish, recordLocalTurn } from '../../../calls/ask/ask.ts';
import { collectImages, maxImages } from '../../../calls/ask/prompt.ts';
import { maskArguments, maskDocument } from '../../../calls/ask/redaction.ts';
import { onThread } from '../../../calls/ask/with-thread.ts';
import type { AnsweredCall, LocalTurn, ModelTurn, ThreadedCall } from '../../../calls/call-record.ts';
import { type Reply, readControlStatus } from '../../../calls/reply.ts';
import type { Evidence, EvidencePiece, Step, StepFacts, WorkflowMode, WorkflowProgress } from '../../../calls/tool.ts';
import { stepOf } from '../../../calls/tool.ts';
import { inputError } from '../../../core/errors.ts';
import { type JsonObject, jsonOf } from '../../../core/json.ts';
import type { StoredTurn } from '../../../core/thread.ts';
import { createTracer } from '../../../workspace/call-graph/tracer.ts';
import { listSourceFiles, missingPaths } from '../../../workspace/find-files.ts';
import { isSkip } from '../../../workspace/paths.ts';
import type { Mode, ModeServices } from '../mode.ts';
import { expertDocument, pauseDocument, skippedDocument, stepDocument, workSince } from './documents.ts';
import { advance, isSameRun, orderWarning, readProgress, repeatsEvidence } from './step-progress.ts';

/**
 * A step as the turn that everybody after it reads: what was done, what was found, in readable text, with `lines` of the tool's own.
 * `sure`: the caller said how sure it is; the default is no news.
 */
function contributionOf(step: Step, sure: boolean, lines: readonly (string | false | undefined)[]): string {
  const revision = step.revises === undefined ? '' : ` (revises step ${step.revises})`;
  const parts = [
    `Step ${step.stepNumber} of ${Math.max(step.totalSteps, step.stepNumber)}${revision}: ${step.step}`,
    step.findings && `Findings: ${step.findings}`,
    step.hypothesis && `Hypothesis: ${step.hypothesis}`,
    sure && `Confidence: ${step.confidence}`,
    listed('Files checked', step.filesChecked),
    listed('Relevant files', step.relevantFiles),
    listed('Relevant code', step.relevantContext),
    listed('Issues', step.issuesFound.map(issueText)),
    ...lines,
  ];
  return parts.filter(Boolean).join('\n');
}

const listed = (title: string, items: readonly string[]): string =>
  items.length === 0 ? '' : `${title}:\n${items.map(item => `- ${item}`).join('\n')}`;

function issueText({ severity, description, ...rest }: Record<string, unknown>): string {
  const told = description ?? '';
  const text = typeof told === 'object' ? JSON.stringify(told) : String(told);
  const more = Object.keys(rest).length > 0 ? ` ${JSON.stringify(rest)}` : '';
  return `[${String(severity ?? 'unrated').toUpperCase()}] ${text}${more}`;
}

/** What the tool finds out by itself; nothing of it goes anywhere unmasked. */
async function ownEvidence(services: ModeServices, mode: WorkflowMode, call: ThreadedCall, settings: JsonObject) {
  if (!mode.evidence) return undefined;
  const { request, thread, signal } = call;
  const { mask, workflow } = services;
  const place = { root: request.principal.root, scope: thread.id, signal };
  const found = await mode.evidence(settings, { git: workflow.git, trace: createTracer(services), ...place });
  const hide = async (text: string) => (await mask(text.toWellFormed(), thread.id)).text;
  const hidePiece = async ({ title, text }: EvidencePiece) => ({ title: await hide(title), text: await hide(text) });
  const { document, issues = [], turn = [], forExpert = [], nothing } = found;
  return {
    document: await maskDocument(mask, document, thread.id),
    issues: await Promise.all(issues.map(issue => maskArguments(mask, issue, thread.id))),
    turn: await Promise.all(turn.map(hide)),
    forExpert: await Promise.all(forExpert.map(hidePiece)),
    nothing: nothing && (await hide(nothing)),
  };
}

/** Issues that the tool found itself say so, to tell them from the caller's and from what it finds at a later step. */
function withOwnIssues(progress: WorkflowProgress, tool: string, evidence: Evidence | undefined): WorkflowProgress {
  if (!evidence?.issues) return progress;
  const callers = progress.issuesFound.filter(({ found_by }) => found_by !== tool);
  return { ...progress, issuesFound: [...callers, ...evidence.issues.map(issue => ({ ...issue, found_by: tool }))] };
}

type StepCall = Awaited<ReturnType<typeof record>>;

/** One step of a workflow. State is the thread's: two callers, two daemons or a restart in between give the same answers. */
export const workflow: Mode<WorkflowMode> = onThread(takeStep);

async function takeStep(mode: WorkflowMode, call: ThreadedCall, services: ModeServices): Promise<Reply> {
  const tool = call.tool.name;
  const step = stepOf(call.args, mode.unsure);
  const before = readProgress(call.thread.workflows[tool], call.tool.fields);
  const isForked =
    !before && step.stepNumber > 1 && call.thread.turns.some(turn => turn.toolName === tool && turn.status === 'done');
  const warning = orderWarning(tool, step, before, { isForked, asks: mode.expert !== undefined });
  if (warning !== undefined) call.warnings.push(warning);
  if (!isSameRun(before, step)) {
    checkFirst(tool, mode, step, call.args);
    if (services.sandbox.roots.length === 0) call.warnings.push(nothingReadable);
  }
  const stepCall = await record(mode, call, services, { step, before });
  const own = await endWithoutExpert(stepCall, before, services);
  return own ? recordLocalTurn(services, call, own) : askExpert(services, stepCall);
}

/** What a step comes to without an expert; undefined: one is to be asked. */
async function endWithoutExpert(stepCall: StepCall, before: WorkflowProgress | undefined, services: ModeServices) {
  const { mode, step, facts, call } = stepCall;
  if (facts.evidence?.nothing !== undefined) {
    facts.progress.ended = true;
    return declined(stepCall, facts.evidence.nothing);
  }
  if (step.nextStepRequired) {
    const stale = call.args.findings !== undefined && repeatsEvidence(before, step);
    return local(stepCall, pauseDocument(call.tool.name, mode, facts, stale));
  }
  const unfinished = mode.unfinished?.(facts);
  if (unfinished) {
    facts.progress.ended = false;
    return local(stepCall, unfinished);
  }
  if (mode.finish) {
    const { document, turn } = mode.finish(facts);
    return { ...local(stepCall, { [mode.words.complete]: true, ...document }), contribution: turn };
  }
  if (step.useExpert === false) return declined(stepCall, 'Present your findings with their evidence.');
  const certain = mode.certain?.(step, call.args, facts.progress.settings) ?? false;
  if (certain && mode.words.skipped && !services.workflow.expertAtCertain)
    return local(stepCall, { ...skippedDocument(mode, facts), ...mode.verdict?.(facts) });
  const answer = before?.ended ? await answerBefore(stepCall, services) : undefined;
  return answer && answeredAgain(stepCall, answer, services);
}

const nothingReadable =
  'No file can be read here, by the expert either: no project is known. Start the server in a directory with .git or a project file (package.json, pyproject.toml …), let the host name the directory as a root, or set POLYLOGUE_ROOTS.';

/**
 * The expert's answer to this very step, where nothing has changed since: who sends a step twice does not pay twice. Other
 * words, files, images or another model ask anew, and so does a step whose expert asked for something.
 */
async function answerBefore({ call, contribution, facts, step }: StepCall, services: ModeServices) {
  const { thread, tool, common, request } = call;
  const { sandbox } = services;
  const done = thread.turns.filter(({ toolName, status }) => toolName === tool.name && status === 'done');
  const answer = done.findLast(({ role }) => role === 'assistant');
  const asked = done.find(({ role, exchange }) => role === 'user' && exchange === answer?.exchange);
  if (!answer || !asked || readControlStatus(answer.content) || step.revises !== undefined) return undefined;
  const models = [undefined, answer.modelMetadata?.requested, answer.modelName];
  const isSame =
    `${asked.content}\n\n`.startsWith(`${contribution}\n\n`) &&
    (facts.evidence?.forExpert ?? []).every(({ text }) => asked.content.includes(text)) &&
    models.includes(common.model);
  if (!isSame) return undefined;
  const { records } = await collectImages(services, call, step.images);
  // What came later, or with a question that failed, is not what was judged.
  const judged = thread.turns.filter(({ seq, status }) => status === 'done' && seq <= answer.seq);
  const shown = new Set(judged.flatMap(({ images }) => images.map(({ blob }) => blob)));
  if (records.some(({ blob }) => !shown.has(blob))) return undefined;
  const seen = new Map(judged.flatMap(({ files }) => files.map(file => [file.path, file])));
  for (const path of new Set([...seen.keys(), ...facts.progress.relevantFiles])) {
    const found = await sandbox.locate(resolve(request.principal.root, path));
    const record = seen.get(isSkip(found) ? path : found.path);
    const isSeen = !isSkip(found) && found.mtimeMs === record?.mtimeMs && found.size === record.size;
    if (isSkip(found) ? record : found.kind === 'file' && !isSeen) return undefined;
  }
  return answer;
}

function answeredAgain(stepCall: StepCall, answer: StoredTurn, services: ModeServices): LocalTurn {
  const { content, modelName, modelProvider } = answer;
  const { mode, facts, call } = stepCall;
  call.warnings.push(
    'The expert has answered this very step: its answer is returned again, and no model was asked. To ask again, send what is new in findings, another model, or revises_step.',
  );
  const told = { text: content, embedded: 0, known: facts.progress.relevantFiles.length, partial: false };
  const again = local(stepCall, expertDocument(mode, facts, services.workflow.compat, told));
  return { ...again, metadata: { ...again.metadata, model_used: modelName, provider_used: modelProvider } };
}

async function record(
  mode: WorkflowMode,
  call: ThreadedCall,
  services: ModeServices,
  { step, before }: { step: Step; before: WorkflowProgress | undefined },
) {
  const tool = call.tool.name;
  const { sandbox, home } = services;
  const place = { root: call.request.principal.root, home, signal: call.signal };
  const missing = await missingPaths(sandbox, [...new Set([...step.filesChecked, ...step.relevantFiles])], place);
  const news = jsonOf(Object.fromEntries((mode.settings ?? []).map(name => [name, call.args[name]])));
  const advanced = advance(before, step, call.thread.seq);
  const counted = mode.counted?.(advanced.kept);
  const found = counted ? await listSourceFiles(sandbox, step.relevantFiles, place) : [];
  const gone = await missingPaths(sandbox, counted ?? [], place);
  const held = { ...advanced.settings, ...news };
  const looks = step.stepNumber === 1 || !step.nextStepRequired || !isDeepStrictEqual(held, advanced.settings);
  const evidence = looks ? await ownEvidence(services, mode, call, held) : undefined;
  const progress: WorkflowProgress = {
    ...withOwnIssues(advanced, tool, evidence),
    known: advanced.known || (!isSameRun(before, step) && holdsFiles(call, step.relevantFiles)),
    settings: held,
    kept: mode.keep?.(advanced.kept, step, call.args, { found, gone }) ?? {},
  };
  const brief = Object.keys(news).length > 0 ? (mode.brief?.(progress.settings) ?? []) : [];
  const lines = [...brief, ...(evidence?.turn ?? [])];
  const contribution = contributionOf(step, call.args.confidence !== undefined, lines);
  const work = [...workSince(call.thread, tool, progress.afterSeq), contribution];
  const facts = { step, args: call.args, progress, work, evidence };
  const document: JsonObject = {
    ...stepDocument(tool, mode, step, progress),
    ...(missing.length > 0 && { files_not_found: [...missing] }),
    ...evidence?.document,
  };
  return { mode, step, facts, call, contribution, document };
}

/** Whether models of this thread have seen all of these files. */
function holdsFiles({ thread, request }: ThreadedCall, named: readonly string[]): boolean {
  const seen = thread.turns
    .filter(({ status }) => status === 'done')
    .flatMap(({ files }) => files.map(({ path }) => path));
  const isSeen = (name: string) => {
    const path = resolve(request.principal.root, name);
    return seen.some(each => each === path || each.startsWith(`${path}/`));
  };
  return named.length > 0 && named.every(isSeen);
}

function checkFirst(tool: string, mode: WorkflowMode, step: Step, args: Record<string, unknown>): void {
  if (step.stepNumber !== 1) return;
  const isAbsent = (value: unknown) => value === undefined || (Array.isArray(value) && value.length === 0);
  const absent = (mode.neededAtFirst ?? []).filter(name => isAbsent(args[name]));
  if (absent.length === 0) return;
  throw inputError(`Step 1 of ${tool} requires ${absent.join(', ')}.`, {
    code: 'MISSING_PARAMETER',
    next: `Resend step 1 with ${absent.join(', ')}.`,
    validationErrors: absent.map(field => ({ field, error: 'missing in step 1' })),
  });
}

/** The state stays when a run is over: a step that comes after all finds what was gathered. */
const local = ({ call, mode, step, facts, contribution, document }: StepCall, ending: JsonObject): LocalTurn => ({
  contribution,
  images: [...new Set(step.images)],
  workflow: { tool: call.tool.name, state: jsonOf(facts.progress) },
  document: { ...document, ...ending, ...mode.keys?.(facts) },
  metadata: mode.metadata?.(facts),
});

/** The last step when no expert was wanted, none can be had, or there is nothing to judge. */
function declined(stepCall: StepCall, next: string): LocalTurn {
  const { mode, facts } = stepCall;
  const status = 'local_work_complete';
  const ending = { status, next_step_required: false, [mode.words.complete]: true, next_steps: next };
  return local(stepCall, { ...ending, ...mode.verdict?.(facts) });
}

async function askExpert(services: ModeServices, stepCall: StepCall) {
  const { call, mode, facts, step } = stepCall;
  const { progress } = facts;
  const { contribution, images, workflow, document } = local(stepCall, {});
  const isThreadShown = call.common.context === 'thread';
  const all = progress.images.length;
  const sent = isThreadShown ? images : progress.images.slice(-maxImages);
  if (!isThreadShown && all > maxImages)
    call.warnings.push(
      `The expert sees the newest ${maxImages} of ${all} images. With context "thread" it sees all of them.`,
    );
  const turn: ModelTurn = {
    contribution,
    tail: tailOf(mode, facts),
    wholeOnly: mode.expert?.json,
    files: [...new Set([...progress.relevantFiles, ...(mode.files?.(progress.settings) ?? [])])],
    evidence: facts.evidence?.forExpert,
    images: sent,
    earlierImages: isThreadShown ? all - (sent?.length ?? 0) : 0,
    aboutFiles: mode.neededAtFirst?.includes('relevant_files'),
    category: mode.category ?? 'extended_reasoning',
    effort: mode.effort ?? 'high',
    workflow,
  };
  const finish = ({ answer, files, evidenceLeftOut }: AnsweredCall): Finish => ({
    text: answer.text,
    document: text => ({
      ...document,
      ...expertDocument(mode, facts, services.workflow.compat, {
        text,
        embedded: files.embedded.length + files.changed.length,
        known: files.unchanged.length,
        partial: files.outlined.length + files.summarised.length + files.skipped.length > 0,
      }),
      ...(evidenceLeftOut.length > 0 && { evidence_left_out: evidenceLeftOut }),
    }),
  });
  const withoutModel = declined(
    stepCall,
    'Present your findings. No expert was asked because no provider is configured: set a key (OPENAI_API_KEY, ANTHROPIC_API_KEY, …) or CUSTOM_API_URL to enable expert reviews.',
  );
  const next_steps = `Step ${step.stepNumber} is not recorded: resend it in full once the error is dealt with, or with use_assistant_model false to do without the expert.`;
  return askModelTurn(services, call, turn, finish, { local: { ...document, next_steps }, withoutModel });
}

function tailOf(mode: WorkflowMode, { step, progress }: StepFacts<Record<string, unknown>>): string {
  const hypotheses = progress.hypotheses.map(
    ({ step: number, hypothesis, confidence }) => `step ${number} (${confidence}): ${hypothesis}`,
  );
  const bare = progress.lastStep === 1 && step.findings === '';
  const parts = [
    mode.expert?.role,
    `The task, as it was given: ${progress.request}`,
    mode.brief?.(progress.settings).filter(Boolean).join('\n'),
    hypotheses.length > 0 && `Hypotheses so far:\n${hypotheses.join('\n')}`,
    bare
      ? 'The caller brings a question without findings: judge by the files.'
      : 'The caller’s findings are in the conversation above; judge them by the files.',
  ];
  return parts.filter(Boolean).join('\n\n');
}
