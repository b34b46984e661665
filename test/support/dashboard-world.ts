import { join } from 'node:path';
import type { Clock } from '../../src/core/ports.ts';
import type { UserAnswer } from '../../src/core/tool-host.ts';
import type { Daemon } from '../../src/server/daemon/daemon.ts';
import { aheadBy, realClock } from './clock.ts';
import { type Document, type TestProduct, testProduct, vendorEnv } from './product.ts';
import { type TempProject, tempProject } from './temp-project.ts';
import type { FakeVendor, RecordedRequest } from './vendors/fake-vendor.ts';
import { startAnthropic } from './vendors/start-anthropic.ts';
import { startGoogle } from './vendors/start-google.ts';
import { startOpenAi } from './vendors/start-open-ai.ts';
import { waitUntil } from './wait-until.ts';

export const models = { google: 'gemini-2.5-flash', openai: 'gpt-5-mini', anthropic: 'claude-sonnet-4-5' } as const;

/** Alice and her reader share one owner; Mallory is somebody else. */
export const tokens = {
  alice: 'alice-token-0123456789',
  reader: 'reader-token-0123456789',
  mallory: 'mallory-token-0123456789',
  toolless: 'toolless-token-0123456789',
} as const;

const dayMs = 86_400_000;

/** The whole product behind its port, with threads of some weeks that were made by real calls to fake vendors. */
export interface DashboardWorld {
  polylogue: TestProduct;
  project: TempProject;
  vendors: { google: FakeVendor; openai: FakeVendor; anthropic: FakeVendor };
  daemon: Daemon;
  /** A call of Alice's. */
  call(name: string, args: Record<string, unknown>): Promise<Document>;
  /** A call of Alice's that goes on until it is cancelled. */
  begin(prompt: string): { cancel(): Promise<Document> };
  /** Moves the time of day on. */
  pass(ms: number): void;
  close(): Promise<void>;
}

const tokensFile = JSON.stringify({
  tokens: [
    { name: 'alice', token: tokens.alice },
    { name: 'alices-reader', token: tokens.reader, owner: 'alice', read_only: true },
    { name: 'mallory', token: tokens.mallory },
    { name: 'toolless', token: tokens.toolless, owner: 'alice', deny: ['threads'] },
  ],
});

export async function startDashboardWorld(): Promise<DashboardWorld> {
  const [google, openai, anthropic] = await Promise.all([startGoogle(), startOpenAi(), startAnthropic()]);
  const project = await tempProject({
    'src/cart.ts': cartBefore,
    'src/session.ts': source(240),
    'tokens.json': tokensFile,
  });
  const real = realClock();
  let ahead = -19 * dayMs - 12 * 60_000;
  const clock: Clock = {
    ...aheadBy(real, () => ahead),
    // Vendors that fail are asked again at once.
    sleep: (ms, signal) => real.sleep(Math.min(ms, 10), signal),
  };
  const urls = vendorEnv({ google: google.url, openai: openai.url, anthropic: anthropic.url });
  const env = {
    ...urls,
    POLYLOGUE_TOKENS_FILE: join(project.root, 'tokens.json'),
    POLYLOGUE_REQUESTS_PER_MINUTE: '60000',
    POLYLOGUE_TOOLSETS: 'core,code,files,agent',
  };
  const polylogue = await testProduct({ root: project.root, env, clock });
  const daemon = await polylogue.product.openDaemon({ host: '127.0.0.1', port: 0 });
  const vendors = { google, openai, anthropic };
  return {
    polylogue,
    project,
    vendors,
    daemon,
    call: (name, args) => polylogue.call(name, args, { owner: 'alice' }),
    begin(prompt) {
      google.script({ fault: 'hang_before_headers' });
      const before = google.requests.length;
      const gone = new AbortController();
      const options = { owner: 'alice', signal: gone.signal };
      const reply = polylogue.call('chat', { prompt, model: models.google }, options);
      return {
        async cancel() {
          // A request that never came would leave its fault to the next call.
          await waitUntil('the vendor was asked', () => google.requests.length > before);
          gone.abort();
          return reply;
        },
      };
    },
    pass(ms) {
      ahead += ms;
    },
    async close() {
      await daemon.close();
      await polylogue.close();
      await Promise.all([...Object.values(vendors).map(vendor => vendor.close()), project.dispose()]);
    },
  };
}

/** What some weeks leave behind. Answers the ids of threads that pages are looked at with. */
export async function liveThrough(world: DashboardWorld): Promise<{ cart: string; panel: string; session: string }> {
  const { vendors, call, pass, project } = world;
  for (let day = 0; day < 17; day++) {
    const questions = [2, 3, 1, 4, 0, 1, 3][day % 7] ?? 1;
    for (let index = 0; index < questions; index++) {
      const { prompt, answer } = small[(day + index) % small.length] ?? small[0];
      const vendor = (['google', 'openai', 'anthropic'] as const)[(day + index) % 3] ?? 'google';
      vendors[vendor].script({ answer });
      await call('chat', { prompt, model: models[vendor] });
    }
    pass(dayMs);
  }
  pass(2 * dayMs);
  const session = await aboutSession(world);
  const cart = await aboutCart(world);
  const panel = await aboutTables(world);
  vendors.openai.byDefault({ fault: 'status', status: 503 });
  for (let failure = 0; failure < 3; failure++)
    await call('chat', { prompt: 'Which HTTP status fits a lost lease?', model: models.openai, allow_fallback: false });
  vendors.openai.byDefault({});
  await project.write('src/cart.ts', cartAfter);
  return { cart, panel, session };
}

async function aboutSession({ vendors, call }: DashboardWorld): Promise<string> {
  vendors.google.script(
    { answer: 'It keeps one row a browser, found by a cookie.' },
    { answer: 'After 30 minutes, by `expires_at`.' },
  );
  const args = { model: models.google, absolute_file_paths: ['src/session.ts'] };
  const first = await call('chat', { ...args, prompt: 'How does this module keep sessions?' });
  const { continuation_id } = first.continuation_offer;
  await call('chat', { model: models.google, continuation_id, prompt: 'And when do they end?' });
  return continuation_id;
}

async function aboutCart({ vendors, call, project, pass }: DashboardWorld): Promise<string> {
  vendors.anthropic.script({ answer: cartAnswer });
  const first = await call('chat', {
    prompt: 'Why is the cart empty after the page is loaded again? It worked before the session refactoring.',
    absolute_file_paths: ['src/cart.ts'],
    model: models.anthropic,
  });
  const { continuation_id } = first.continuation_offer;
  pass(9 * 60_000);
  await project.write('src/cart.ts', cartAfter);
  const finds = [
    {
      url: 'https://developer.mozilla.org/docs/Web/API/Window/localStorage',
      title: 'Window: localStorage',
      quote: 'persists across sessions',
      age: '3 months',
    },
    {
      url: 'https://html.spec.whatwg.org/multipage/webstorage.html',
      title: 'HTML Standard: Web storage',
      quote: 'The localStorage getter',
      age: '1 month',
    },
  ];
  vendors.anthropic.script({ answer: secondAnswer, finds });
  await call('chat', {
    prompt: 'Is this right now? Check how browsers treat localStorage in private windows.',
    absolute_file_paths: ['src/cart.ts'],
    model: models.anthropic,
    use_websearch: true,
    continuation_id,
  });
  return continuation_id;
}

async function aboutTables({ vendors, call, pass }: DashboardWorld): Promise<string> {
  pass(3 * 60_000);
  vendors.google.byDefault(judging(verdicts.google));
  vendors.openai.byDefault(judging(verdicts.openai));
  vendors.anthropic.byDefault(judging(verdicts.anthropic));
  const reply = await call('consensus', {
    prompt: 'Should the session table move from files to SQLite?',
    models: [models.google, { model: models.openai, stance: 'for' }, { model: models.anthropic, stance: 'against' }],
  });
  for (const vendor of Object.values(vendors)) vendor.byDefault({});
  return reply.continuation_offer.continuation_id;
}

/** Two runs of Alice's agent: one that was allowed its change, and one that waits for an answer. */
export async function letAgentWork({ polylogue, project, vendors }: DashboardWorld) {
  const principal = { owner: 'alice', root: project.root };
  const call = (args: Record<string, unknown>, answers: [string, UserAnswer][] = []) => {
    const request = { name: 'agent', arguments: args, principal, answers: new Map(answers) };
    return polylogue.product.host.call(request, new AbortController().signal);
  };
  const write = (line: number, text: string) => {
    const content = source(240).replace(`'row ${line} of the table'`, text);
    return { calls: [{ name: 'write_file', args: { path: 'src/session.ts', content } }] };
  };
  const model = `anthropic:${models.anthropic}`;
  vendors.anthropic.script(
    { calls: [{ name: 'read_file', args: { path: 'src/session.ts' } }], reasoning: 'First I look.' },
    write(7, "'row seven'"),
    { answer: 'Row 7 has its name.' },
  );
  const first = await call({ task: 'Give row 7 its name.', model });
  const [question] = first.questions ?? [];
  const allowed: UserAnswer = { action: 'accept', content: { decision: 'allow' } };
  await call({ run_id: first.document.run_id }, [[question?.key ?? '', allowed]]);
  vendors.anthropic.script(write(9, "'row nine, which is `expires_at` now'"));
  const waiting = await call({ task: 'Rename the column in row 9.', model });
  return { thread: String(first.document.continuation_id), run: String(waiting.document.run_id) };
}

/** Every page of the dashboard, with something to see on it, but for that where a token is asked for. */
export async function pagesOf(world: DashboardWorld): Promise<Record<string, string>> {
  const { cart, panel, session } = await liveThrough(world);
  const { run, thread } = await letAgentWork(world);
  const headers = { authorization: `Bearer ${tokens.alice}` };
  const page = await (await fetch(world.daemon.url, { headers })).text();
  const callOf = (tool: string) => new RegExp(`href="(/calls/[^"]+)">${tool}<`).exec(page)?.[1] ?? '';
  return {
    live: '/',
    run: `/runs/${run}`,
    call: callOf('consensus'),
    agent: callOf('agent'),
    calls: '/calls',
    failed: '/calls?outcome=failed',
    stored: `/threads/${cart}/turns/1/call`,
    threads: '/threads',
    found: '/threads?q=refactoring',
    thread: `/threads/${cart}`,
    worked: `/threads/${thread}`,
    compare: `/threads/${cart}/compare/${session}`,
    turn: `/threads/${cart}/turns/2`,
    file: `/threads/${cart}/turns/3/files/0`,
    consensus: `/threads/${panel}/verdicts`,
    providers: '/providers',
    spend: '/spend',
    projects: '/spend?by=project',
    nothing: '/threads/00000000-0000-4000-8000-000000000000',
  };
}

function judging(verdict: string) {
  const text = ({ messages }: RecordedRequest) => messages.map(message => message.text).join('\n');
  return { answer: (request: RecordedRequest) => (text(request).includes('"minority_view"') ? synthesis : verdict) };
}

const small = [
  {
    prompt: 'What does the UNIQUE constraint cost on insert?',
    answer: 'One index look-up a row; under load it shows as lock time.',
  },
  {
    prompt: 'Name three ways to keep a retry from storming a vendor.',
    answer: '1. Full jitter.\n2. A budget.\n3. A breaker.',
  },
  {
    prompt: 'Explain why this regular expression backtracks.',
    answer: 'The two stars can share the same letters: `(a*)*`.',
  },
  {
    prompt: 'Write a commit message for a renamed column.',
    answer: '`refactor(store): sessions.expiry becomes expires_at`',
  },
] as const;

function source(lines: number): string {
  return Array.from({ length: lines }, (_, line) => `export const session${line} = 'row ${line} of the table';`).join(
    '\n',
  );
}

const cartBefore = `import { storage } from './session.ts';

export function loadCart(user: string): Item[] {
  const text = storage.read(user);
  return text ? JSON.parse(text) : [];
}

export function saveCart(user: string, items: Item[]): void {
  storage.write(sessionKey(), JSON.stringify(items));
}

${Array.from({ length: 60 }, (_, index) => `/** Rebate ${index + 1} of the shop, in cents. */\nexport function rebate${index + 1}(items: Item[]): number {\n  return items.length > ${index + 2} ? ${(index + 1) * 50} : 0;\n}\n`).join('\n')}`;

const cartAfter = cartBefore
  .replace('storage.write(sessionKey(), JSON.stringify(items));', 'storage.write(user, JSON.stringify(items));')
  .replace('const text = storage.read(user);', "const text = storage.read(user) ?? '';");

const cartAnswer = `## What happens
\`saveCart\` writes under **the session's key**, \`loadCart\` reads under the user's name. The two were the same until the refactoring.

\`\`\`ts
export function saveCart(user: string, items: Item[]): void {
  storage.write(user, JSON.stringify(items));
}
\`\`\`

## How to be sure
- Log both keys once; they differ after the first reload.
- A test that saves, makes a new session and loads would have caught it.`;

const secondAnswer = `Yes: both sides use \`user\` now, and an absent text is an empty cart.

In private windows the storage is there, but it is **emptied when the last one closes**; Safari also refuses writes when its quota is 0, so keep the write in a \`try\`.`;

const synthesis = JSON.stringify({
  recommendation:
    'Move the table to SQLite in two steps: write to both, then read from the database. Keep the files for one release.',
  agreement: ['Files lose updates when two processes write.', 'The table is small: the move is a day of work.'],
  disagreement: ['Expert C holds that a lock file would do; it turns on whether a second process is really planned.'],
  minority_view: 'A lock around the files solves the fault that was seen, without a new dependency.',
  next_steps: ['Count the writers in production.', 'Write the migration with a way back.'],
});

function verdictText(
  sentence: string,
  position: string,
  confidence: number,
  reasons: string[],
  takeaways: string[],
): string {
  const list = (items: string[]) => items.map(item => `- ${item}`).join('\n');
  return `## Verdict\n${sentence}\n**Position:** ${position}\n## Analysis\n${list(reasons)}\n## Confidence\n${confidence}/10 – the code was there to look at.\n## Key takeaways\n${list(takeaways)}`;
}

const verdicts = {
  google: verdictText(
    'Do it: files already lose updates.',
    'support',
    8,
    ['Two processes write `sessions.json` without a lock.', 'SQLite brings atomic commits and one file to back up.'],
    ['Migrate with dual writes.', 'Measure before and after.'],
  ),
  openai: verdictText(
    'A clear yes, and soon.',
    'support',
    9,
    ['The table is read on every request: an index is worth it.', 'Expiry becomes one `DELETE`.'],
    ['Use WAL mode.', 'Keep the schema to three columns.'],
  ),
  anthropic: verdictText(
    'Not yet: a lock would do.',
    'oppose',
    6,
    ['One process writes today; the loss was seen in a test only.', 'A new dependency needs an owner.'],
    ['Add a lock file first.', 'Decide again when a second process is planned.'],
  ),
};
