/** The main job on this repository's own source: analyze → chat → crash and edit → debug by another vendor's model. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Account, accountIn, sharedPrefix, tokensByPart } from './account.ts';
import { chooseLiveModels } from './live.ts';
import { type Session, startSession } from './session.ts';

const capUsd = 0.5;
const live = process.argv.includes('--live');
const repository = join(import.meta.dirname, '../..');

const place = await mkdtemp(join(tmpdir(), 'polylogue-demo-'));
const project = join(place, 'project');
let previous: Account | undefined;
let spent = 0;

try {
  for (const folder of ['src/threads', 'src/storage']) {
    await cp(join(repository, folder), join(project, folder), { recursive: true });
  }
  await run();
} finally {
  await rm(place, { recursive: true, force: true });
}

async function run(): Promise<void> {
  const models = live
    ? await chooseLiveModels(project, capUsd)
    : { first: 'offline-east:echo-east', second: 'offline-west:echo-west', keys: {} };
  const start = () =>
    startSession({
      args: live ? [] : ['--offline'],
      cwd: project,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: place,
        POLYLOGUE_HOME: join(place, 'home'),
        PROJECT_ROOT: project,
        LOG_LEVEL: 'warning',
        ...models.keys,
      },
    });

  title('A server starts; analyze works in steps');
  const one = await start();
  const files = ['src/threads/transcript.ts', 'src/threads/compaction.ts', 'src/storage/memory/memory.ts'];
  const step = { total_steps: 2, relevant_files: files, model: models.first };
  const pause = await one.call('analyze', {
    ...step,
    step: 'How does a stored thread become a prompt, and where could the prompt outgrow the window?',
    step_number: 1,
    next_step_required: true,
    findings:
      'Starting: transcript.ts renders turns, compaction.ts shortens threads, memory/memory.ts keeps them in memory.',
  });
  told(pause);
  say(`required actions: ${list(pause.required_actions)}`);
  const id = String(pause.continuation_id);

  title('analyze, last step: the expert is asked');
  const analysis = await one.call('analyze', {
    ...step,
    step: 'Conclusion of the analysis.',
    step_number: 2,
    next_step_required: false,
    continuation_id: id,
    findings:
      'selectTurns never drops turns between compactions; outgrown() compares estimated tokens with the history share.',
    confidence: 'high',
  });
  told(analysis);
  show(analysis, String(record(analysis.expert_analysis).raw_analysis ?? ''));

  title('chat goes on with the same continuation_id: no file is sent again');
  const chat = await one.call('chat', {
    prompt: 'Which of these three files would you test first, and with which property?',
    absolute_file_paths: [files[0]],
    continuation_id: id,
    model: models.first,
  });
  told(chat);
  show(chat, String(chat.content));

  title('The server is killed (SIGKILL), a file is edited, a new server starts');
  await one.kill();
  await edit(join(project, files[2] ?? ''));
  const two = await start();

  title('debug goes on in the same thread, with a model of another vendor');
  const debugged = await two.call('debug', {
    step: 'After the edit threads vanish while they are still in use.',
    step_number: 1,
    total_steps: 1,
    next_step_required: false,
    findings: 'memory/memory.ts was edited: it now keeps at most 10 threads.',
    hypothesis: 'The limit was lowered for a test and forgotten.',
    confidence: 'medium',
    relevant_files: [files[2]],
    continuation_id: id,
    model: models.second,
  });
  told(debugged);
  show(debugged, `\`\`\`json\n${JSON.stringify(debugged.expert_analysis)}\n\`\`\``);

  title('The thread, as it is stored');
  await transcript(two, id);
  await two.close();
}

async function edit(path: string): Promise<void> {
  const text = await readFile(path, 'utf8');
  const edited = text.replace('maxThreads = 1000', 'maxThreads = 10');
  if (edited === text) throw new Error(`${path} has no maxThreads to edit`);
  await writeFile(path, edited);
  say(`edited: ${short(path)} (maxThreads 1000 → 10)`);
}

function told(reply: Record<string, unknown>): void {
  const offer = record(reply.continuation_offer);
  say(`status: ${reply.status}`);
  say(`continuation: ${offer.continuation_id} (${offer.remaining_turns} more turns before it is summarised)`);
}

function show(reply: Record<string, unknown>, answer: string): void {
  const metadata = record(reply.metadata);
  const files = record(metadata.files);
  say(
    `asked: ${metadata.provider_used}:${metadata.model_used} in ${metadata.latency_ms} ms, ${metadata.overhead_ms} ms of our own`,
  );
  say(`files embedded: ${list(files.embedded)}`);
  say(`files unchanged: ${list(files.unchanged)}`);
  say(`files changed: ${list(files.changed)}`);
  say(`budget: ${JSON.stringify(metadata.budget)}`);
  if (live) {
    spent += Number(metadata.cost_usd ?? 0);
    say(`usage: ${JSON.stringify(metadata.usage)}; spent so far: ${spent.toFixed(4)} USD`);
    if (spent > capUsd) throw new Error(`the cap of ${capUsd} USD is reached`);
    return;
  }
  const account = accountIn(answer);
  if (!account) throw new Error(`the offline model gave no account: ${answer.slice(0, 400)}`);
  explain(account);
}

function explain(account: Account): void {
  const { preamble, history, question, tail } = tokensByPart(account);
  say(`the model was sent ${account.totals.messages} messages, about ${account.totals.tokens} tokens:`);
  say(`  preamble ${preamble}, earlier turns ${history}, this question with its files ${question}, task ${tail}`);
  for (const message of account.messages) {
    for (const { path, form, lines } of message.files)
      say(`  ${message.role}: ${form} ${short(path)}${lines ? ` (${lines} lines)` : ''}`);
  }
  const shared = sharedPrefix(previous, account);
  const percent = (part: number) => `${Math.round(part * 100)} %`;
  if (previous) {
    const whole = account.messages.reduce((sum, message) => sum + message.chars, 0);
    say(
      `of the prompt before, ${percent(shared.share)} (${shared.chars} of ${shared.of} characters) opens this one unchanged; that is ${percent(shared.chars / whole)} of this one`,
    );
  }
  previous = account;
}

async function transcript(session: Session, id: string): Promise<void> {
  let cursor: string | undefined;
  do {
    const page = await session.call('threads', { action: 'read', continuation_id: id, cursor });
    for (const turn of Array.isArray(page.transcript) ? page.transcript : []) {
      const { turn: seq, role, tool, model, content } = record(turn);
      say(
        `${seq}. ${role} · ${tool}${model ? ` · ${model}` : ''}: ${String(content).replace(/\s+/g, ' ').slice(0, 160)}`,
      );
    }
    cursor = typeof page.next_cursor === 'string' ? page.next_cursor : undefined;
  } while (cursor !== undefined);
}

function title(text: string): void {
  console.log(`\n== ${text}`);
}

function say(text: string): void {
  console.log(`   ${text}`);
}

function short(path: string): string {
  return path.replace(`${project}/`, '').replace(/^.*\/project\//, '');
}

function list(value: unknown): string {
  return Array.isArray(value) && value.length > 0 ? value.map(item => short(String(item))).join(', ') : 'none';
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : {};
}
