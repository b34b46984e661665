import { withValues } from '../../app/settings.ts';
import { homeProblem } from '../../config/home.ts';
import type { JsonObject } from '../../core/json.ts';
import { counted } from '../../core/text.ts';
import { type CommandContext, defineCommand, flag } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';
import { checks, type Finding } from '../doctor/doctor-checks.ts';

const signs = { ok: 'ok  ', note: '    ', warn: 'warn', fail: 'FAIL' } as const;
const colours = { ok: 'green', note: 'dim', warn: 'yellow', fail: 'red' } as const;

export const doctor = defineCommand({
  name: 'doctor',
  group: 'Setup',
  summary: 'Check the setup and explain how to fix what is wrong',
  flags: [flag('repair', 'Check all stored threads and replace a damaged file by what is intact')],
  examples: [
    ['polylogue doctor', 'Check the setup; exits with 1 if something is broken'],
    ['polylogue doctor --offline', 'Check with the flags you start the server with'],
    ['polylogue doctor --repair', 'Check all stored threads and replace a damaged file by what is intact'],
    ['polylogue doctor --json', 'Print JSON; secret values are never shown'],
  ],
  run(context) {
    // Where nothing can be kept, all else is looked at as if nothing had to be.
    const isKept = homeProblem(context.config.home) === undefined;
    const config = isKept ? context.config : withValues(context.config, { private: true });
    return openProduct({ ...context, config }, async ({ product }) => {
      context.out.status('Checking…');
      const findings: Finding[] = [];
      for (const check of checks) findings.push(...(await check(context, product, findings)));
      context.out.status('');
      const broken = findings.filter(({ state }) => state === 'fail').length;
      const rows: JsonObject[] = findings.map(finding => ({ ...finding }));
      context.out.document({ status: broken > 0 ? 'broken' : 'success', findings: rows });
      print(context, findings, broken);
      return broken > 0 ? 1 : 0;
    });
  },
});

function print({ out }: CommandContext, findings: readonly Finding[], broken: number): void {
  const width = Math.min(28, Math.max(...findings.map(({ what }) => what.length)));
  for (const { state, what, text, next } of findings) {
    out.line(out.style(colours[state], signs[state]), `  ${what.padEnd(width)}  ${text}`);
    if (next) out.line(`      ${' '.repeat(width)}  → ${next}`);
  }
  out.line('');
  if (broken === 0) out.line('Everything works.');
  else out.line(`${counted(broken, 'problem')} found. Apply the fixes marked →, then run "polylogue doctor" again.`);
}
