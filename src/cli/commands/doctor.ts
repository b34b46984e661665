import type { Product } from '../../app/app.ts';
import { withValues } from '../../app/settings.ts';
import { homeProblem } from '../../config/home.ts';
import type { JsonObject } from '../../core/json.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { type CommandContext, defineCommand, flag, isOn } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';
import type { Finding } from '../doctor/doctor-checks.ts';
import {
  checkClock,
  checkCommandSandbox,
  checkDaemons,
  checkHandshakes,
  checkMachine,
  checkProviders,
  checkRoots,
  checkSettings,
  checkStore,
  checkSummaries,
  repairStore,
  warning,
} from '../doctor/doctor-checks.ts';

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
  run: context =>
    openProduct(examined(context), async ({ product }) => {
      context.out.status('Checking…');
      const findings: Finding[] = [
        ...(await checkMachine(context)),
        ...(await checkStore(product.inspectStore)),
        ...checkClock(product),
        ...(isOn(context.flags, 'repair') ? await repairStore(product.repairStore) : []),
        ...checkRoots(product),
        ...checkSettings(context),
        ...(await checkDaemons(context)),
        ...product.models.warnings.map(text => warning('models', text)),
        ...(await checkProviders(product.models)),
        ...(await product.models.namesOfNone()).map(text => warning('lists of models', text)),
        ...(await checkSummaries(context, product)),
        ...(await checkCommandSandbox(product)),
        toolsFinding(product),
        ...(await checkHandshakes(context)),
      ];
      findings.push(...warnedFindings(product, findings));
      context.out.status('');
      const broken = findings.filter(({ state }) => state === 'fail').length;
      const rows: JsonObject[] = findings.map(finding => ({ ...finding }));
      context.out.document({ status: broken > 0 ? 'broken' : 'success', findings: rows });
      print(context, findings, broken);
      return broken > 0 ? 1 : 0;
    }),
});

/** Where nothing can be kept, all else is looked at as if nothing had to be. */
function examined(context: CommandContext): CommandContext {
  const { config } = context;
  if (homeProblem(config.home) === undefined) return context;
  return { ...context, config: withValues(config, { private: true }) };
}

/** What the server warned of, but for what was found anyway. */
function warnedFindings({ warned, readable }: Product, found: readonly Finding[]): Finding[] {
  return (
    warned
      .filter(({ where }) => where !== 'roots' || readable.roots.length > 0)
      // By the vendors' lists of now this was looked at anew.
      .filter(({ where }) => where !== 'lists of models')
      .filter(({ message }) => !found.some(({ text }) => message.includes(text)))
      .map(({ where, message }) => warning(where, message))
  );
}

function toolsFinding({ host }: Product): Finding {
  const tools = host.list();
  const text = JSON.stringify(tools);
  return {
    state: 'ok',
    what: 'tools',
    text: `${tools.length} offered; the list is ${Buffer.byteLength(text)} bytes, about ${estimateTokens(text)} tokens`,
  };
}

function print({ out }: CommandContext, findings: readonly Finding[], broken: number): void {
  const width = Math.min(28, Math.max(...findings.map(({ what }) => what.length)));
  for (const { state, what, text, next } of findings) {
    out.line(out.style(colours[state], signs[state]), `  ${what.padEnd(width)}  ${text}`);
    if (next) out.line(`      ${' '.repeat(width)}  → ${next}`);
  }
  out.line('');
  out.line(
    broken === 0
      ? 'Everything works.'
      : `${broken} ${broken === 1 ? 'problem' : 'problems'} found. Apply the fixes marked →, then run "polylogue doctor" again.`,
  );
}
