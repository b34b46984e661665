import { maskArguments, maskDocument } from '../../calls/ask/redaction.ts';
import type { Resumed } from '../../calls/call-record.ts';
import type { Evidence, EvidenceContext, WorkflowProgress, WorkflowShape } from '../../calls/tool.ts';
import type { Mask } from '../../core/ports.ts';

type Shape = WorkflowShape<Record<string, unknown>>;

/** What it takes to let a tool look for itself. */
export interface EvidenceSource {
  /** What every tool may use; the call adds whose it is. */
  offered: Pick<EvidenceContext, 'git' | 'trace'>;
  mask: Mask;
}

/** What the tool finds out by itself; nothing of it goes anywhere unmasked. */
export async function ownEvidence(
  { offered, mask }: EvidenceSource,
  shape: Shape,
  { request, thread, signal }: Resumed,
  settings: Partial<Record<string, unknown>>,
): Promise<Evidence | undefined> {
  const context = { ...offered, root: request.principal.root, scope: thread.id, signal };
  const found = await shape.evidence?.(settings, context);
  if (!found) return undefined;
  const hide = async (text: string) => (await mask(text.toWellFormed(), thread.id)).text;
  const { document, issues = [], turn = [], forExpert = [] } = found;
  return {
    document: await maskDocument(mask, document, thread.id),
    issues: await Promise.all(issues.map(issue => maskArguments(mask, issue, thread.id))),
    turn: await Promise.all(turn.map(hide)),
    forExpert: await Promise.all(
      forExpert.map(async ({ title, text }) => ({ title: await hide(title), text: await hide(text) })),
    ),
  };
}

/** Issues that the tool found itself say so, to tell them from the caller's and from what it finds at a later step. */
export function withOwnIssues(
  progress: WorkflowProgress,
  tool: string,
  evidence: Evidence | undefined,
): WorkflowProgress {
  if (!evidence?.issues) return progress;
  const callers = progress.issuesFound.filter(({ found_by }) => found_by !== tool);
  return { ...progress, issuesFound: [...callers, ...evidence.issues.map(issue => ({ ...issue, found_by: tool }))] };
}
