import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tables } from '../../app/settings.ts';
import { loadConfig } from '../../config/load.ts';
import { isRecord, type JsonObject, recordsIn } from '../../core/json.ts';
import { type CommandContext, defineCommand } from '../command/command.ts';
import { type OpenProduct, openProduct, showFailure } from '../command/open-product.ts';

/** What a built-in model was sent, as its answer tells. */
export type Account = NonNullable<ReturnType<typeof accountIn>>;

/** The account in a reply: in a text, or as an expert's findings. */
export function accountIn({ content, expert_analysis: expert }: JsonObject) {
  const said = isRecord(expert) ? (expert.raw_analysis ?? expert) : content;
  const answer = typeof said === 'string' ? jsonIn(said) : said;
  if (!isRecord(answer) || !Array.isArray(answer.messages) || !isRecord(answer.totals)) return undefined;
  const messages = answer.messages.filter(isRecord);
  return {
    tokens: Number(answer.totals.tokens),
    messages,
    /** Each with how it was sent: `full`, `diff`, `unchanged`. */
    files: messages.flatMap(({ files }) => recordsIn(files).map(shown)),
  };
}

function jsonIn(text: string): unknown {
  const json = /```json\n([\s\S]*?)\n```/.exec(text)?.[1];
  return json === undefined ? undefined : JSON.parse(json);
}

const shown = ({ path, form }: Record<string, unknown>): string => `${String(path).split('/').at(-1)} (${form})`;

/** How much of the prompt before opens this one, unchanged: what a vendor need not read again. The task at the end is never kept. */
export function keptOf(before: Account, now: Account): number {
  const lasting = ({ messages }: Account) => messages.filter(({ section }) => section !== 'tail');
  const [old, fresh] = [lasting(before), lasting(now)];
  const changed = old.findIndex(({ sha256 }, at) => fresh[at]?.sha256 !== sha256);
  const kept = changed < 0 ? old : old.slice(0, changed);
  const chars = (messages: Account['messages']) => messages.reduce((sum, each) => sum + Number(each.chars), 0);
  return chars(kept) / Math.max(1, chars(old));
}

/** A small program with a fault, for the demonstration to speak about. */
const files = {
  'cart.ts': `export interface Item {
  name: string;
  cents: number;
}

/** What all items cost together. */
export function total(items: readonly Item[]): number {
  let sum = 0;
  for (let n = 0; n <= items.length; n++) sum += items[n].cents;
  return sum;
}
`,
  'cart.test.ts': `import { total } from './cart.ts';

test('an empty cart costs nothing', () => {
  expect(total([])).toBe(0);
});
`,
};

export const programFile = 'cart.ts';

export const testFile = 'cart.test.ts';

interface Step {
  title: string;
  tool: string;
  args: JsonObject;
}

/** Arguments of one of the steps that a tool is called in. */
const stepOf = (step_number: number, total_steps: number, step: string, findings: string): JsonObject => {
  return { step, step_number, total_steps, next_step_required: step_number < total_steps, findings };
};

const both = { relevant_files: [programFile, testFile], model: 'offline-east:echo-east' };

const before: readonly Step[] = [
  {
    title: 'analyze, step 1: the tool says what to look at',
    tool: 'analyze',
    args: {
      ...stepOf(
        1,
        2,
        'How does the cart add up, and what could go wrong?',
        'total() goes over the items with an index.',
      ),
      ...both,
    },
  },
  {
    title: 'analyze, last step: an expert model is asked',
    tool: 'analyze',
    args: { ...stepOf(2, 2, 'Conclusion.', 'The loop ends one item too late.'), ...both },
  },
  {
    title: 'chat continues the thread: no file is sent twice',
    tool: 'chat',
    args: { prompt: 'Which test is missing?', absolute_file_paths: [programFile], model: 'offline-east:echo-east' },
  },
];

const after: readonly Step[] = [
  {
    title: "debug continues with another vendor's model: same thread, current file",
    tool: 'debug',
    args: {
      ...stepOf(1, 1, 'Does the edit fix it?', 'The loop was edited.'),
      hypothesis: 'It now ends where the items end.',
      confidence: 'high',
      relevant_files: [programFile],
      model: 'offline-west:echo-west',
    },
  },
];

export const demo = defineCommand({
  name: 'demo',
  group: 'Setup',
  summary: 'Show on a sample project what models receive; no key needed',
  examples: [
    ['polylogue demo', 'Two tools, a restart, an edit and two vendors in one thread'],
    ['polylogue demo --json', 'Print the account as JSON'],
  ],
  async run(context) {
    const place = await mkdtemp(join(tmpdir(), 'polylogue-demo-'));
    return inPlace(context, place).finally(() => rm(place, { recursive: true, force: true }));
  },
});

async function inPlace(context: CommandContext, place: string): Promise<number> {
  const { out } = context;
  const project = join(place, 'cart');
  await mkdir(project);
  for (const [name, text] of Object.entries(files)) await writeFile(join(project, name), text);
  const apart = contextIn(context, place, project);
  const told: JsonObject[] = [];
  let id: string | undefined;
  let latest: Account | undefined;

  /** Answers the exit code; above 0 where a step was interrupted or failed, which was told then. */
  async function runSteps({ call }: OpenProduct, steps: readonly Step[]): Promise<number> {
    for (const { title, tool, args } of steps) {
      const reply = await call(tool, { ...args, ...(id !== undefined && { continuation_id: id }) });
      if (reply.isError) return showFailure(context, reply);
      const { document } = reply;
      id ??= String(document.continuation_id);
      const account = accountIn(document);
      const kept = account && latest ? keptOf(latest, account) : undefined;
      latest = account ?? latest;
      const sent = account && { ...account, messages: account.messages.length, kept_of_the_prompt_before: kept };
      told.push({ title, tool, status: String(document.status), sent });
      out.line('\n', out.style('bold', title));
      out.line(`  ${tool} → ${document.status}, continuation_id ${id}`);
      if (!account) continue;
      out.line(`  sent: about ${account.tokens} tokens in ${account.messages.length} messages`);
      out.line(`  files in the prompt: ${account.files.join(', ')}`);
      if (kept !== undefined) out.line(`  ${Math.round(kept * 100)} % of the prompt before opens this one unchanged`);
    }
    return 0;
  }

  const failed = await openProduct(apart, open => runSteps(open, before));
  if (failed > 0) return failed;
  // Somebody mends the fault while nobody serves.
  await writeFile(join(project, programFile), files[programFile].replace('n <= items.length', 'n < items.length'));
  out.line(`\nServer stopped, ${programFile} edited, new server started.`);
  const failedLater = await openProduct(apart, open => runSteps(open, after));
  if (failedLater > 0) return failedLater;
  out.document({ status: 'success', steps: told });
  out.line(
    '\nThese were built-in test models that only describe what they received. To get real answers, set an API key.',
  );
  out.line('Next: run "polylogue init" to add Polylogue to your editor, and "polylogue doctor" to check the setup.');
  return 0;
}

/** The example's own folder and data, whatever this machine has set. */
function contextIn(context: CommandContext, place: string, project: string): CommandContext {
  const { environment } = context;
  const { homeDir, platform } = environment;
  const env = { POLYLOGUE_HOME: join(place, 'home'), PROJECT_ROOT: project };
  const argvFlags = { offline: true };
  const config = loadConfig({ tables, env, argvFlags, homeDir, platform, cwd: project, readFile: () => undefined });
  return { ...context, config, environment: { ...environment, cwd: project } };
}
