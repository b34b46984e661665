import type { Step } from '../../calls/tool.ts';

export interface ContributionNotes {
  /** Lines of the tool's own. */
  brief: readonly string[];
  /** The caller said how sure it is; the default is no news. */
  sure: boolean;
}

/** A step as the turn that everybody after it reads: what was done, what was found, in readable text. */
export function contributionOf(step: Step, { brief, sure }: ContributionNotes): string {
  const revision = step.revises === undefined ? '' : ` (revises step ${step.revises})`;
  const lines = [
    `Step ${step.stepNumber} of ${Math.max(step.totalSteps, step.stepNumber)}${revision}: ${step.step}`,
    step.findings && `Findings: ${step.findings}`,
    step.hypothesis && `Hypothesis: ${step.hypothesis}`,
    sure && `Confidence: ${step.confidence}`,
    listed('Files checked', step.filesChecked),
    listed('Relevant files', step.relevantFiles),
    listed('Relevant code', step.relevantContext),
    listed('Issues', step.issuesFound.map(issueText)),
    ...brief,
  ];
  return lines.filter(Boolean).join('\n');
}

function listed(title: string, items: readonly string[]): string {
  return items.length === 0 ? '' : `${title}:\n${items.map(item => `- ${item}`).join('\n')}`;
}

function issueText(issue: Record<string, unknown>): string {
  const { severity, description, ...rest } = issue;
  const more = Object.keys(rest).length > 0 ? ` ${JSON.stringify(rest)}` : '';
  return `[${String(severity ?? 'unrated').toUpperCase()}] ${textOf(description)}${more}`;
}

function textOf(description: unknown): string {
  if (description === undefined || description === null) return '';
  return typeof description === 'object' ? JSON.stringify(description) : String(description);
}
