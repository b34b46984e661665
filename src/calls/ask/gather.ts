import { limitError } from '../../core/errors.ts';
import { textOf } from '../../core/message.ts';
import type { Turn } from '../../core/thread.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../core/tokens.ts';
import { collectDocuments, withDocuments } from '../../engine/documents/collect-documents.ts';
import { refuseIfNothingReadable } from '../../engine/gather/embed.ts';
import { type CollectedImages, collectImages } from '../../engine/gather/images.ts';
import type { PromptToCount } from '../../models/sources/count-prompt.ts';
import { imageTokens } from '../../threads/transcript.ts';
import { type CollectedFile, collectFiles } from '../../workspace/collect-files.ts';
import type { Gathered, Routed } from '../call-record.ts';
import type { ComposeOptions } from './options.ts';
import { buildPrompt, type Prompt, type PromptParts } from './prompt.ts';
import { searchFiles } from './search-files.ts';
import { withModelSummary } from './summarise-history.ts';

/** Builds the prompt: preamble, the thread's turns, the new turn with its files, and the tail. Never above the window. */
export async function gather(options: ComposeOptions, call: Routed): Promise<Gathered> {
  const { plan, request, signal, thread } = call;
  const images = await collectImages(options, call);
  const draft = draftTurn(options, call, images);
  const documents = await collectDocuments(options, call);
  const found = await collectFiles(options.sandbox, documents.others, {
    root: request.principal.root,
    home: options.home,
    maxNamedFiles: options.maxNamedFiles,
    maxBytes: options.maxFileBytes,
    signal,
  });
  const collected = withDocuments(options, documents, found);
  const skipped = [...collected.skipped, ...images.skipped];
  refuseIfNothingReadable(
    [...plan.files, ...(plan.fileIds ?? []), ...(plan.images ?? [])],
    collected.files.length + images.records.length,
    skipped,
  );
  const searched = await searchFiles(options, call);
  const parts = { draft, images, collected, found: searched.found };
  const fitting = await fittingPrompt(options, call, parts);
  refuseIfNoneFits(call, fitting, collected.files);
  const prompt = await withModelSummary(options.summaries, call, fitting, shortened =>
    fittingPrompt(options, { ...call, thread: shortened }, parts),
  );
  const { selection, compaction, embedded, budget, historyUsed } = prompt;
  if (compaction) {
    const { upToSeq, window } = compaction;
    options.emit({ type: 'thread.compacted', reqId: call.reqId, thread: thread.id, upToSeq, window });
  }
  const upTo = selection.compaction?.upToSeq ?? 0;
  return {
    ...call,
    warnings: [...call.warnings, ...searched.warnings],
    turn: prompt.turn,
    messages: prompt.messages,
    blobs: [...images.blobs, ...embedded.blobs].map(([sha256, text]) => ({ sha256, text })),
    compaction,
    files: { ...embedded.report, skipped: [...skipped, ...embedded.report.skipped] },
    evidenceLeftOut: prompt.evidenceLeftOut,
    budget: { ...budget, historyUsed, filesUsed: embedded.tokens },
    history: {
      turns: thread.turns.length,
      sent: selection.turns.length,
      summarised: thread.turns.filter(turn => turn.seq <= upTo).length,
      trimmed: selection.compaction?.trims.length ?? 0,
      ...(prompt.summary && { summary: prompt.summary }),
    },
  };
}

/** How often a prompt is made smaller before the call is given up. */
const mostTries = 5;
/** What a measured surplus is raised by, so that the next try fits. */
const surplusMargin = 1.05;

/**
 * Estimates are right for what people and programs write; a text of random characters can be three times as dear. So a
 * prompt that might exceed the window (its bytes bound its tokens) is counted, and made anew by the measured price if it does.
 */
async function fittingPrompt(
  options: ComposeOptions,
  call: Routed,
  parts: Omit<PromptParts, 'factor'>,
): Promise<Prompt> {
  const { model } = call.candidates[0];
  const family = tokenFactor(model.id);
  let factor = family;
  for (let tries = 0; tries < mostTries; tries++) {
    const prompt = await buildPrompt(options, call, { ...parts, factor });
    const pictures = prompt.messages.flatMap(({ parts: all }) => all.filter(part => part.type === 'image')).length;
    const around = prompt.messages.length * tokensPerMessage + pictures * imageTokens;
    const room = model.window - prompt.budget.answer - around;
    const texts = prompt.messages.map(textOf);
    const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    if (bytes * family <= room) return prompt;
    const ours = Math.ceil((await options.countTokens(texts, call.signal)) * family);
    if (ours <= room) return prompt;
    // A family's factor is the worst that was measured: where it says no, the vendor itself may know better.
    const told = await options.countPrompt?.(countable(call, prompt));
    const counted = told === undefined ? ours : told - around;
    if (counted <= room) return prompt;
    const estimated = prompt.budget.reserved + prompt.historyUsed + prompt.embedded.tokens;
    factor *= Math.max(surplusMargin, (counted / Math.max(1, estimated)) * surplusMargin);
  }
  throw limitError('tokens', `What the call needs does not fit into the window of ${model.window} tokens.`, {
    next: 'Name fewer files, shorten the text, or choose a model with a larger window (listmodels shows them).',
    data: { window: model.window },
  });
}

function countable({ reqId, candidates, signal }: Routed, { messages, budget }: Prompt): PromptToCount {
  return { reqId, candidate: candidates[0], messages, maxOutputTokens: budget.answer, signal };
}

function draftTurn(options: ComposeOptions, { thread, plan, tool }: Routed, images: CollectedImages): Turn {
  return {
    seq: thread.seq + 1,
    role: 'user',
    content: plan.contribution,
    timestamp: options.clock.now(),
    exchange: options.newExchange(),
    toolName: tool.name,
    files: [],
    images: images.records,
    citations: [],
    tokens: 0,
  };
}

/** Files of which not one has room: the caller must choose, so it is told the numbers before a model is paid. */
function refuseIfNoneFits(
  { candidates }: Routed,
  { embedded, budget, historyUsed }: Prompt,
  files: readonly CollectedFile[],
): void {
  const { embedded: sent, outlined, summarised, unchanged, changed } = embedded.report;
  if (files.length === 0 || [sent, outlined, summarised, unchanged, changed].some(list => list.length > 0)) return;
  const { model } = candidates[0];
  const total = files.reduce((sum, file) => sum + estimateTokens(file.text), 0);
  const limit = budget.rest - historyUsed;
  const instructions = 'Name fewer files, ranges of lines (file.ts:10-80), or a model with a larger window.';
  throw limitError('tokens', `The named files take about ${total} tokens; there is room for ${limit}.`, {
    next: instructions,
    replyStatus: 'code_too_large',
    replyContent: `The named files take about ${total} tokens; ${model.id} has room for ${limit}. ${instructions}`,
    data: {
      total_estimated_tokens: total,
      limit,
      file_count: files.length,
      model_context_window: model.window,
      model_name: model.id,
      instructions,
    },
  });
}
