import { cutMiddle, safeCut } from '../../core/text.ts';

/** Characters; of what is longer, the beginning and the end. */
const longestShown = 12_000;
const longestNames = 4_000;

/** What somebody is asked to approve. Where it is too long for a form, that comes first, with every file that a patch in it may name. */
export function shownToApprove(text: string): string {
  if (text.length <= longestShown) return text;
  const heads = text.match(/^(?:diff --git|---|\+\+\+) .*$/gm) ?? [];
  const names = heads.map(head => safeCut(head, 300)).join('\n');
  const left = names.length > longestNames ? '\n… and MORE FILES than can be named here.' : '';
  const files = names === '' ? '' : `\nAll files in it:\n${safeCut(names, longestNames)}${left}\n`;
  const notShown = text.length - longestShown;
  return `!! About ${notShown} characters are NOT shown: the middle of it. Refuse where that will not do.\n${files}\n${cutMiddle(text, longestShown)}`;
}
