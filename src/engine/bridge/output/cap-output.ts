import type { JsonObject } from '../../../core/json.ts';
import { safeCut } from '../../../core/text.ts';

/** Characters of an answer that a reply shows. */
const limit = 20_000;
const excerpt = 4_000;

/** An answer as a reply shows it; the thread keeps it whole. */
export function capOutput(text: string, cliName: string): { text: string; metadata: JsonObject } {
  if (text.length <= limit) return { text, metadata: {} };
  const sizes = { output_original_length: text.length, output_limit: limit };
  const summary = summaryIn(text);
  if (summary !== undefined) {
    const shown = safeCut(summary, limit);
    return { text: shown, metadata: { output_summarized: true, ...sizes, output_summary_length: shown.length } };
  }
  const shown = safeCut(text, excerpt);
  const note = `The answer of ${cliName} has ${text.length} characters; a reply shows ${limit} at the most, and it brought no <SUMMARY>. Its first ${shown.length} follow; the thread has all of it.`;
  return {
    text: `${note}\n\n--- Beginning of the answer ---\n\n${shown}`,
    metadata: { output_truncated: true, ...sizes, output_excerpt_length: shown.length },
  };
}

/** The last one counts: an answer may speak of summaries before it brings its own. */
function summaryIn(text: string): string | undefined {
  const close = text.toLowerCase().lastIndexOf('</summary>');
  if (close === -1) return undefined;
  const open = text.toLowerCase().lastIndexOf('<summary>', close);
  if (open === -1) return undefined;
  return text.slice(open + '<summary>'.length, close).trim() || undefined;
}
