import type { Product } from '../../app/app.ts';
import type { CommandContext } from '../command/command.ts';
import type { Finding } from './doctor-checks.ts';

/** Which model sums up long threads; without the one that was named there are extracts, and nobody would notice. */
export async function checkSummaries({ config }: CommandContext, { explainRoute }: Product): Promise<Finding[]> {
  const model = config.values.app.compactionModel;
  if (model === 'auto' || model === 'off') return [];
  const question = { tool: 'chat', prompt: '', files: [], images: 0, model, askModel: false };
  const { candidates, failure } = await explainRoute(question, AbortSignal.timeout(5_000));
  const what = 'COMPACTION_MODEL';
  if (failure) return [{ state: 'warn', what, text: failure.message, ...(failure.next && { next: failure.next }) }];
  return [{ state: 'ok', what, text: `${candidates[0]?.model.id ?? model} sums up long threads` }];
}
