import type { AskPlan } from '../call-record.ts';
import type { PromptShape } from '../define.ts';
import { specialStatus } from '../special-status.ts';

/** One question, one answer. */
export function planPrompt(shape: PromptShape<Record<string, unknown>>, args: Record<string, unknown>): AskPlan {
  return {
    kind: 'ask',
    contribution: shape.question(args),
    tail: shape.role,
    files: filesOf(args),
    category: shape.category,
    effort: shape.effort,
    local: {},
    conclude({ answer, files, plan }) {
      const special = specialStatus(answer.text);
      const cut =
        answer.partial || answer.finish.kind === 'length' || (plan.files.length > 0 && files.skipped.length > 0);
      return {
        status: special?.status ?? (cut ? 'partial' : 'continuation_available'),
        content: answer.text,
        content_type: special ? 'json' : 'text',
      };
    },
  };
}

function filesOf(args: Record<string, unknown>): string[] {
  const given = args.absolute_file_paths ?? args.relevant_files;
  return Array.isArray(given) ? given.map(String) : [];
}
