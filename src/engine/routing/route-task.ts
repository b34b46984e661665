import type { ComposeOptions } from '../../calls/ask/options.ts';
import type { AskPlan, Resumed } from '../../calls/call-record.ts';
import type { Thread } from '../../core/thread.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { measureFiles } from '../../files/walk/measure-files.ts';
import { windowClass } from '../../memory/budget.ts';
import { documentsAmong, picturesAmong } from '../../models/manager/file-kinds.ts';
import type { RouteTask } from '../../models/manager/route-plan.ts';
import { selectionTokens } from '../../threads/compaction.ts';
import { imageTokens, selectTurns } from '../../threads/transcript.ts';

/** Bytes of a text file for one token of it, with the numbers before its lines. */
const bytesPerToken = 3;
/** What a wide window would be sent of a thread. */
const wideWindow = 1_000_000;

type Place = Pick<ComposeOptions, 'sandbox' | 'home' | 'maxFileBytes' | 'preamble'>;

/** A call as the AI manager sees it: what is asked, with how much beside it. Files are measured, not read. */
export async function routeTask(options: Place, call: Resumed, plan: AskPlan): Promise<RouteTask> {
  const { common, tool, args, thread, request } = call;
  const steps = tool.shape.kind === 'workflow' && typeof args.step === 'string';
  const text = steps ? String(args.step) : plan.contribution;
  const words = [options.preamble, plan.contribution, plan.tail, ...(plan.evidence ?? []).map(piece => piece.text)];
  const images = plan.images ?? [];
  const place = { root: request.principal.root, signal: call.signal };
  const estimate =
    words.reduce((sum, each) => sum + estimateTokens(each), 0) +
    images.length * imageTokens +
    (await fileTokens(options, plan.files, place)) +
    (common.context === 'thread' ? threadTokens(thread) : 0);
  return {
    tool: tool.name,
    text,
    files: plan.files,
    images: images.length,
    estimatedTokens: estimate,
    watched: request.onText !== undefined || request.onProgress !== undefined,
    ...(common.webSearch !== undefined && { useWebsearch: common.webSearch }),
    ...(isNamed(common.model) && { model: common.model }),
  };
}

/** Whether a caller's word names a model, rather than leaving the choice. */
export function isNamed(model: string | undefined): model is string {
  return model !== undefined && !/^\s*auto\s*(?::|$)/i.test(model);
}

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

function threadTokens(thread: Thread): number {
  return selectionTokens(selectTurns(thread, windowClass(wideWindow)));
}
