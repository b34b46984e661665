import { inputError, isAppError } from '../../core/errors.ts';
import { type Candidate, efforts, type ModelInfo } from '../../core/model.ts';
import type { StoredTurn, Thread } from '../../core/thread.ts';
import { estimateTokens, imageTokens } from '../../core/tokens.ts';
import type { WebSearch } from '../../models/ask-model.ts';
import { absentModel } from '../../models/call/call-context.ts';
import type { Opinion } from '../../models/routing/classifier.ts';
import { splitSuffix } from '../../models/routing/names.ts';
import { documentsAmong, picturesAmong, type TaskProfile } from '../../models/routing/requirements.ts';
import type { Resolution } from '../../models/routing/resolve.ts';
import type { ModelRequest } from '../../models/routing/roster.ts';
import { selectionTokens, windowClass } from '../../threads/compaction.ts';
import { selectTurns } from '../../threads/transcript.ts';
import { measureFiles } from '../../workspace/walk.ts';
import type { CommonArguments } from '../arguments.ts';
import type { ModelTurn, RoutedCall, ThreadedCall } from '../call-record.ts';
import { workflowOf } from '../tool.ts';
import type { CallServices, SearchSettings } from './services.ts';

/** Bytes of a text file for one token of it, with the numbers before its lines. */
const bytesPerToken = 3;

/** What a wide window would be sent of a thread. */
const wideWindow = 1_000_000;

type Place = Pick<CallServices, 'sandbox' | 'home' | 'maxFileBytes' | 'preamble'>;

/** A call as the AI manager sees it: what is asked, with how much beside it. Files are measured, not read. */
async function routeTask(services: Place, call: ThreadedCall, plan: ModelTurn): Promise<TaskProfile> {
  const { common, tool, args, thread, request } = call;
  const steps = workflowOf(tool) !== undefined && typeof args.step === 'string';
  const text = steps ? String(args.step) : plan.contribution;
  const words = [services.preamble, plan.contribution, plan.tail, ...(plan.evidence ?? []).map(piece => piece.text)];
  const images = plan.images ?? [];
  const place = { root: request.principal.root, signal: call.signal };
  const estimate =
    words.reduce((sum, each) => sum + estimateTokens(each), 0) +
    images.length * imageTokens +
    (await fileTokens(services, plan.files, place)) +
    (common.context === 'thread' ? threadTokens(thread) : 0);
  return {
    tool: tool.name,
    text,
    files: plan.files,
    images: images.length + (plan.earlierImages ?? 0),
    estimatedTokens: estimate,
    useWebsearch: common.webSearch,
    ...(isNamed(common.model) && { model: common.model }),
  };
}

/** Whether a caller's word names a model, rather than leaving the choice. */
export const isNamed = (model: string | undefined): model is string =>
  model !== undefined && !/^\s*auto\s*(?::|$)/i.test(model);

/** What the named files will about take; documents and pictures are no text. */
export async function fileTokens(
  { sandbox, home, maxFileBytes: maxBytes }: Omit<Place, 'preamble'>,
  files: readonly string[],
  place: { root: string; signal?: AbortSignal },
): Promise<number> {
  if (files.length === 0) return 0;
  const measured = await measureFiles(sandbox, files, { ...place, home, maxBytes });
  const paths = measured.map(({ path }) => path);
  const noText = new Set([...documentsAmong(paths, ''), ...picturesAmong(paths, '')]);
  const bytes = measured.reduce((sum, file) => sum + (noText.has(file.path) ? 0 : file.bytes), 0);
  return Math.ceil(bytes / bytesPerToken);
}

const threadTokens = (thread: Thread): number => selectionTokens(selectTurns(thread, windowClass(wideWindow)));

/** Vendors keep what they were sent for minutes, or an hour at the most. */
const cachedMs = 3_600_000;

/** For calls whose models are chosen one by one: only where the caller says so. */
export const askedSearch = (
  { when, ...search }: SearchSettings,
  { webSearch: asked }: Pick<CommonArguments, 'webSearch'>,
): WebSearch | undefined => (asked && when !== 'off' ? search : undefined);

/**
 * Whether the model of a call may search the web. Once it could in a thread, it can in the thread's later turns too: vendors
 * key their caches on the tools of a request, and one that comes and goes would cost the whole thread each time. Only the
 * caller's own no, or the operator's, takes it away.
 */
function searchFor(
  { when, ...search }: SearchSettings,
  { webSearch: asked }: Pick<CommonArguments, 'webSearch'>,
  thread: Thread,
  { plan, candidates, searches }: Resolution,
): WebSearch | undefined {
  if (when === 'off' || asked === false) return undefined;
  if (asked) return search;
  if (!searches) return undefined;
  const [first] = candidates;
  const before = lastBy(thread, first.model);
  return plan?.tools.webSearch || before?.modelMetadata?.webSearch ? search : undefined;
}

/**
 * Routing for one call: the AI manager gets to know what it is about, and where its rules leave that open, a small model is
 * asked. Told to the observers. Several requests of one call share what was found out.
 */
function planCall(services: CallServices, call: ThreadedCall, task: TaskProfile): ChooseModel {
  const { reqId, tool, signal, request, thread } = call;
  const payer = { owner: request.principal.owner, thread: thread.id };
  let opining: ReturnType<typeof services.classify> | undefined;
  return async asked => {
    let resolution = await services.route({ ...asked, task });
    let opinion: Opinion | undefined;
    if (resolution.plan?.unclear) {
      opining ??= services.classify(task.text, { reqId, tool: tool.name, payer, signal });
      opinion = await opining;
      if (opinion?.told) resolution = await services.route({ ...asked, task: { ...task, told: opinion.told } });
    }
    const { plan, candidates, requested } = resolution;
    if (plan)
      services.emit({
        type: 'route.plan',
        reqId,
        tool: tool.name,
        class: plan.class,
        reasons: plan.reasons,
        requested,
        chosen: candidates.map(({ model }) => `${model.provider}:${model.id}`),
        webSearch: plan.tools.webSearch,
        ...(opinion && { classifier: { ...opinion } }),
      });
    return resolution;
  };
}

export type ChooseModel = (request: ModelRequest) => Promise<Resolution>;

/** The candidates of one call, the best first, chosen by `choose` or as the AI manager plans it, and why. */
export async function routeCall(
  services: CallServices,
  call: ThreadedCall,
  plan: ModelTurn,
  choose?: ChooseModel,
): Promise<RoutedCall> {
  const { common, tool, thread } = call;
  const task = await routeTask(services, call, plan);
  const last = common.model === undefined ? lastAnswerOf(thread, tool.name) : undefined;
  const used = last && `${last.modelProvider}:${last.modelName}`;
  const isCached = last !== undefined && services.clock.now() - last.timestamp < cachedMs;
  // Who was named stays; who was chosen is weighed anew for each call.
  const remembered = isNamed(last?.modelMetadata?.requested) ? used : undefined;
  const request = {
    category: plan.category,
    needs: { vision: task.images > 0 },
    effort: common.effort,
    toolEffort: services.efforts[tool.name] ?? plan.effort,
    allowFallback: common.allowFallback,
    promptTokens: task.estimatedTokens,
    left: await services.leftToSpend(call.reqId, { owner: call.request.principal.owner, thread: thread.id }),
    ...(used !== undefined &&
      remembered === undefined && { before: { model: used, tokens: isCached ? threadTokens(thread) : 0 } }),
    ...(plan.provider !== undefined && { from: { provider: plan.provider, always: plan.anyProvider !== true } }),
  };
  const planned = choose ?? planCall(services, call, task);
  // The default model may belong to another provider than the plan requires, so one is chosen.
  const unnamed = plan.provider === undefined && request.before === undefined ? undefined : 'auto';
  let resolution: Resolution;
  const warnings = [...call.warnings];
  try {
    resolution = await planned({ ...request, name: common.model ?? remembered ?? unnamed });
  } catch (error) {
    if (remembered === undefined || !isAppError(error)) throw error;
    warnings.push(
      `This thread used ${remembered}, which cannot be used now (${error.message}); another model was chosen.`,
    );
    resolution = await planned({ ...request, name: unnamed });
  }
  const lacking = remembered === undefined ? undefined : lacks(resolution, request.needs.vision, common.webSearch);
  if (lacking !== undefined) {
    const other = await planned({ ...request, name: unnamed });
    if (lacks(other, request.needs.vision, common.webSearch) === undefined) {
      warnings.push(`This thread used ${remembered}, which ${lacking}; another model was chosen.`);
      resolution = other;
    }
  }
  // Whether the caller set the effort, by `thinking_mode` or as a suffix of the model name.
  const isSet = common.effort !== undefined || splitSuffix(common.model ?? '')?.ask !== undefined;
  const withEffort = (candidate: Candidate) => (isSet ? candidate : asBefore(thread, candidate));
  const [first, ...others] = resolution.candidates;
  if ((plan.images ?? []).length > 0 && !first.model.input.includes('image')) {
    const choice = common.model === undefined ? 'send model "auto"' : 'leave model out';
    throw inputError(`${first.model.provider}:${first.model.id} takes no images.`, {
      next: `Name a model that sees images ("listmodels" says which), ${choice} to have one chosen, or leave the images out.`,
      validationErrors: [{ field: 'images', error: 'the model takes none' }],
    });
  }
  return {
    ...call,
    plan,
    warnings: [...warnings, ...resolution.warnings],
    candidates: [withEffort(first), ...others.map(withEffort)],
    requestedModel: resolution.requested,
    corrected: resolution.corrected,
    webSearch: searchFor(services.webSearch, common, thread, resolution),
  };
}

/** What a thread's own model can't do for this call. */
function lacks({ candidates: [first], searches }: Resolution, sees: boolean, search = false): string | undefined {
  if (sees && !first.model.input.includes('image')) return 'takes no images';
  return search && !searches ? 'cannot search the web' : undefined;
}

/** What a model last answered to this tool in this thread. A change of it would lose the vendor's prompt cache and the style. */
const lastAnswerOf = (thread: Thread, tool: string): StoredTurn | undefined =>
  thread.turns.findLast(
    turn =>
      turn.role === 'assistant' &&
      turn.toolName === tool &&
      turn.status === 'done' &&
      turn.modelProvider !== absentModel.provider &&
      turn.modelProvider !== undefined &&
      turn.modelName !== undefined,
  );

const lastBy = (thread: Thread, { provider, id }: ModelInfo): StoredTurn | undefined =>
  thread.turns.findLast(
    ({ status, modelProvider, modelName }) => status === 'done' && modelProvider === provider && modelName === id,
  );

/** Keeps the last effort of this model in the thread if the call sets none, because vendors' caches depend on it. */
function asBefore(thread: Thread, candidate: Candidate): Candidate {
  const last = lastBy(thread, candidate.model);
  const thinkingBudget = last?.modelMetadata?.thinkingBudget;
  const effort = efforts.find(word => word === last?.modelMetadata?.effort);
  return effort === undefined && thinkingBudget === undefined ? candidate : { ...candidate, effort, thinkingBudget };
}
