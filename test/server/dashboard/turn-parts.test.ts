import { expect, it } from 'vitest';
import { htmlText } from '../../../src/server/dashboard/html.ts';
import { codeBlock } from '../../../src/server/dashboard/turn-parts.ts';

it('a change shows comments of SQL and increments as what they are: cut and added', () => {
  const patch = ['--- a/x.sql', '+++ b/x.sql', '@@ -1,3 +1,3 @@', '--- drop it', '+-- keep it', '+++ i;', ' same'].join(
    '\n',
  );
  const shown = htmlText(codeBlock(patch, 'diff'));
  const of = (kind: string) =>
    Array.from(shown.matchAll(new RegExp(`class="${kind}">([^<]*)<`, 'g')), ([, text]) => text);
  expect(of('cut')).toEqual(['--- drop it']);
  expect(of('add')).toEqual(['+-- keep it', '+++ i;']);
  expect(of('same')).toEqual(['--- a/x.sql', '+++ b/x.sql', ' same']);
});
