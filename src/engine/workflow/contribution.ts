import type { Step } from '../define.ts';

/** A step as the turn that everybody after it reads: what was done, what was found, in readable text. */
export function contributionOf(step: Step, extra: readonly string[]): string {
  const lines = [
    `Step ${step.stepNumber} of ${Math.max(step.totalSteps, step.stepNumber)}: ${step.step}`,
    step.findings && `Findings: ${step.findings}`,
    step.hypothesis && `Hypothesis: ${step.hypothesis}`,
    step.confidence && `Confidence: ${step.confidence}`,
    listed('Files checked', step.filesChecked),
    listed('Relevant files', step.relevantFiles),
    listed('Relevant code', step.relevantContext),
    listed('Issues', step.issuesFound.map(issueText)),
    ...extra,
  ];
  return lines.filter(Boolean).join('\n');
}

function listed(title: string, items: readonly string[]): string {
  return items.length === 0 ? '' : `${title}:\n${items.map(item => `- ${item}`).join('\n')}`;
}

export function issueText(issue: Record<string, unknown>): string {
  const { severity, description, ...rest } = issue;
  const more = Object.keys(rest).length > 0 ? ` ${JSON.stringify(rest)}` : '';
  return `[${String(severity ?? 'unrated').toUpperCase()}] ${String(description ?? '')}${more}`;
}
