import type { Product } from '../../app/compose-product.ts';
import { inputError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import { type CommandContext, defineCommand, flag, isOn, textFlag } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';
import { missingPaths, pathsFlag, writtenText } from '../command/run-tool.ts';

type Explanation = Awaited<ReturnType<Product['explainRoute']>>;

const nobody = 2;

export const route = defineCommand({
  name: 'route',
  group: 'Models',
  summary: 'Show which models would answer a prompt, without asking',
  usage: '[prompt...]',
  flags: [
    flag('tool <name>', 'Tool to simulate (default: chat)'),
    flag('file <path>', 'File or directory to include (repeatable)', { repeat: true }),
    flag('image <path>', 'Image to include (repeatable)', { repeat: true }),
    flag('model <name>', 'Model to request'),
    flag('websearch', 'Allow web search, as use_websearch: true does'),
    flag('explain', 'Show every rule and every rejected model'),
    flag('ask-model', 'Let a small model classify the prompt if the rules cannot'),
  ],
  examples: [
    ['polylogue route "What is new in Go?"', 'Show the models that would answer a chat'],
    ['polylogue route --tool codereview --file src --explain', 'Show every rule and each excluded model'],
    ['polylogue route "Read it" --file contract.pdf --json', 'Print JSON'],
  ],
  async run(context) {
    const { flags, out } = context;
    const prompt = await writtenText(context);
    const files = pathsFlag(context, 'file') ?? [];
    const pictures = pathsFlag(context, 'image') ?? [];
    const images = pictures.length;
    const model = textFlag(flags, 'model');
    if (prompt === '' && files.length === 0 && images === 0 && model === undefined)
      throw inputError('There is nothing to route.', {
        next: 'Write the question after the command, as in: polylogue route "What is new in Go?", or name a --file.',
      });
    return openProduct(context, async ({ product, signal }) => {
      const tool = textFlag(flags, 'tool') ?? 'chat';
      const askModel = isOn(flags, 'ask-model');
      const webSearch = isOn(flags, 'websearch') || undefined;
      const question = { tool, prompt, files, images, model, askModel, webSearch };
      const explanation = await product.explainRoute(question, signal);
      const warnings = [...explanation.warnings, ...missingPaths([...files, ...pictures])];
      const document = { ...explanation, warnings };
      out.document(documentOf(document, isOn(flags, 'explain')));
      print(context, document, isOn(flags, 'explain'));
      return explanation.failure ? nobody : 0;
    });
  },
});

function documentOf(explanation: Explanation, whole: boolean): JsonObject {
  const { plan, candidates, leftOut, failure, classifier, corrected, warnings } = explanation;
  const { tool, category, estimatedTokens: estimated_tokens, requested } = explanation;
  const { rules, ...summary } = plan ?? { rules: () => [] };
  return {
    ...{ status: failure ? 'error' : 'success', tool, category, estimated_tokens, requested },
    ...(plan && { plan: { ...summary, ...(whole && { rules: rules() }) } }),
    ...(classifier && { classifier: { ...classifier } }),
    ...(corrected && { model_corrected: { ...corrected } }),
    candidates: candidates.map(({ model, effort, thinkingBudget, reason, price, usd, maxPrompt, searches }) => {
      const asked = { provider: model.provider, model: model.id, effort, thinking_budget: thinkingBudget };
      const costs = { usd_per_million: price, usd_for_this_call: usd };
      return { ...asked, window: model.window, ...costs, max_prompt_tokens: maxPrompt, searches, reason };
    }),
    warnings,
    ...(failure && { error: { ...failure } }),
    ...(whole && { left_out: leftOut.map(group => ({ ...group })) }),
  };
}

function print({ out }: CommandContext, explanation: Explanation, whole: boolean): void {
  const { plan, candidates, classifier, failure } = explanation;
  if (plan) {
    const unsure = plan.unclear ? ', though its words leave that open' : '';
    out.line(out.style('bold', plan.class), `${unsure}; about ${explanation.estimatedTokens} tokens`);
    for (const reason of plan.reasons) out.line(`  ${reason}`);
    out.line(out.style('dim', `  ${needsOf(plan)}`));
  }
  if (classifier)
    out.line(`  ${classifier.asked ?? 'an earlier answer'}: ${classifier.told ?? classifier.failed ?? ''}`);
  candidates.forEach(({ model, effort, reason, searches }, index) => {
    const facts = [effort && `effort ${effort}`, searches && 'searches'].filter(Boolean).join(', ');
    out.line(`${index + 1}. `, out.style('green', `${model.provider}:${model.id}`), facts && ` (${facts})`);
    out.line(out.style('dim', `   ${reason}`));
  });
  if (whole) printWhy(out, explanation);
  for (const warning of explanation.warnings) out.warn(warning);
  if (failure) out.warn([failure.message, failure.next].filter(Boolean).join('\n'));
}

function needsOf({ needs, context, tools }: NonNullable<Explanation['plan']>): string {
  const window = needs.window > 0 && `a window of ${needs.window}`;
  const list = [needs.vision && 'vision', needs.search && 'web search', window].filter(Boolean);
  const files = tools.files ? ', documents are read at the vendor' : '';
  return `needs ${list.length > 0 ? list.join(', ') : 'nothing special'}; files go ${context.replace('_', ' ')}${files}`;
}

const sentences: Readonly<Record<string, string>> = {
  no_key: 'not configured',
  no_provider: 'not part of this installation',
  offline: 'the server runs with --offline',
  not_local: 'only local models may be used',
  denied: 'denied by the operator',
  not_allowed: 'not on the allow-list',
  only_by_name: 'chosen only by name',
  retired: 'being retired by the vendor',
  no_vision: 'sees no images',
  no_search: 'cannot search the web',
  window: 'its window is too small',
  cost: 'too dear for AUTO_COST_LIMIT or a limit on costs',
  failing: 'fails at this moment',
  ranked_lower: 'ranked lower',
  not_named: 'the call names another',
};

const namesShown = 6;

function printWhy(out: CommandContext['out'], { plan, leftOut }: Explanation): void {
  if (plan) {
    out.line('\n', out.style('bold', 'Rules, in their order'));
    for (const { rule, fired, because } of plan.rules()) {
      const answer = fired ? out.style('green', 'yes') : out.style('dim', 'no ');
      out.line('  ', answer, ` ${rule}${because ? `: ${because}` : ''}`);
    }
  }
  out.line('\n', out.style('bold', 'Left out'));
  for (const { why, provider, setting, models } of leftOut) {
    const names = models.slice(0, namesShown).join(', ');
    const more = models.length > namesShown ? ` and ${models.length - namesShown} more` : '';
    const hint = setting ? ` (set ${setting})` : '';
    out.line(`  ${provider}: ${sentences[why] ?? why}${hint}: `, out.style('dim', `${names}${more}`));
  }
}
