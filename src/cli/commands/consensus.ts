import { isRecord, type JsonObject, recordIn, recordsIn } from '../../core/json.ts';
import { type CommandContext, defineCommand, flag, numberFlag, textFlag, wordsFlag } from '../command/command.ts';
import { costText, namedFiles, neededText, runTool, showWarnings } from '../command/run-tool.ts';

const stances = ['for', 'against', 'neutral'] as const;

export const consensus = defineCommand({
  name: 'consensus',
  group: 'Ask',
  summary: 'Have several models judge a proposal; compare verdicts',
  usage: '[proposal...]',
  flags: [
    flag('models <list>', 'Comma-separated models (default: three from different vendors)', { repeat: true }),
    flag('for <list>', 'Models that argue for the proposal', { repeat: true }),
    flag('against <list>', 'Models that argue against the proposal', { repeat: true }),
    flag('neutral <list>', 'Models that weigh both sides, as those of --models do', { repeat: true }),
    flag('file <path>', 'File, picture or directory to show all models (repeatable)', { repeat: true }),
    flag('rounds <number>', 'Rounds; in round 2 models see other verdicts and may revise', { choices: ['1', '2'] }),
    flag('synthesizer <name>', 'Model that writes the synthesis'),
    flag('max-cost <usd>', 'Cost limit for this call, in US dollars'),
    flag('continue <id>', 'Store the verdicts in a thread: its ID, or last'),
  ],
  examples: [
    ['polylogue consensus "Should we move sessions to Redis?"', 'Ask three models of different vendors'],
    [
      'polylogue consensus "Split the parser?" --file src/parse.ts --rounds 2',
      'Include a file; let models revise once',
    ],
    [
      'polylogue consensus "Adopt gRPC?" --models o3,opus,flash --max-cost 0.50',
      'Choose the models and limit the cost',
    ],
    ['polylogue consensus "Adopt gRPC?" --for o3 --against opus --neutral flash', 'Give each model a side'],
  ],
  async run(context) {
    const { flags } = context;
    const next = 'Write it after the command, as in: polylogue consensus "Should we move sessions to Redis?"';
    const sided = stances.flatMap(stance => (wordsFlag(flags, stance) ?? []).map(model => ({ model, stance })));
    const panelists = [...(wordsFlag(flags, 'models') ?? []), ...sided];
    const files = namedFiles(context, 'relevant_files');
    const args = {
      prompt: await neededText(context, 'No proposal given.', next),
      models: panelists.length > 0 ? panelists : undefined,
      ...files.args,
      rounds: numberFlag(flags, 'rounds', { min: 1, max: 2 }),
      max_cost_usd: numberFlag(flags, 'max-cost', { min: 0, fractional: true }),
      synthesizer: textFlag(flags, 'synthesizer'),
      continuation_id: textFlag(flags, 'continue'),
    };
    return runTool(context, 'consensus', args, {
      namedPaths: files.paths,
      print: document => print(context, document),
      finish(document) {
        const silent = recordsIn(document.responses).filter(({ status }) => status !== 'success');
        for (const { model, error } of silent) context.out.warn(`${model}: ${error}`);
        showWarnings(context, document);
        const way = isRecord(document.continuation_offer) ? 'continue with "polylogue ask --continue last"' : '';
        context.out.remark([costText(recordIn(document.metadata), ''), way].filter(Boolean).join('; '));
        return silent.length > 0 ? 1 : 0;
      },
    });
  },
});

function print({ out }: CommandContext, document: JsonObject): void {
  const heading = (title: string) => out.line(out.style('bold', `## ${title}\n`));
  for (const { expert, model, stance, status, verdict } of recordsIn(document.responses)) {
    if (status !== 'success') continue;
    heading(`Expert ${String(expert)}: ${String(model)} (${String(stance)})`);
    out.line(`${String(verdict).trimEnd()}\n`);
  }
  for (const [title, text] of sectionsOf(recordIn(document.consensus))) {
    if (text === '') continue;
    heading(title);
    out.line(`${text}\n`);
  }
}

/** What the verdicts come to, as titles and texts; empty where nothing was said. */
function sectionsOf(result: Record<string, unknown>): (readonly [title: string, text: string])[] {
  const { confidence, synthesizer } = result;
  const facts = recordIn(confidence);
  const score = typeof facts.score === 'number' ? `, ${facts.score} of 10 on average` : '';
  const by = isRecord(synthesizer) && synthesizer.status !== 'success' ? synthesizer : {};
  return [
    ['Synthesis', textOf(result.recommendation ?? result.text)],
    ['No synthesis', textOf(by.error ?? by.reason)],
    ['Agreement', textOf(result.agreement)],
    ['Disagreement', textOf(result.disagreement)],
    ['Minority view', textOf(result.minority_view)],
    ['Confidence', typeof facts.level === 'string' ? `${facts.level}${score}` : ''],
    ['Next steps', textOf(result.next_steps)],
  ];
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(item => `- ${String(item)}`).join('\n');
  return typeof value === 'string' ? value.trim() : '';
}
