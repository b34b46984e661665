import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestProduct, testProduct } from '../../support/product.ts';
import { seededRandom } from '../../support/random.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import type { FakeVendor } from '../../support/vendors/fake-vendor.ts';
import { startOpenAi } from '../../support/vendors/start-open-ai.ts';

const window = 64_000;

/** A long file, a question about it, and the line that answers it. */
interface LongFile {
  name: string;
  question: string;
  answer: string;
  /** What stands before, at and behind the place. */
  block(n: number): string;
  place: string;
  blocks: number;
}

const verbs = 'load store check merge count send close retry settle quote audit carry'.split(' ');
const nouns = 'order invoice request customer payment limit report cache user account price stock'.split(' ');
const word = (list: readonly string[], n: number) => list[n % list.length]!;
const title = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const nameOf = (n: number) => `${word(verbs, n)}${title(word(nouns, n >> 2))}${n}`;
const method = (n: number, signature: string) =>
  `${signature} {\n  // The request waits for its retry when the limit of the account is reached.\n  const ${word(nouns, n)} = await this.${nameOf(n + 1)}(order, limit);\n  return ${word(nouns, n)} ?? fail('the payment of request ${n} was refused');\n}`;
const sentence = (n: number) =>
  `The ${word(nouns, n)} of a ${word(nouns, n + 5)} is kept for its retention period, and the ${word(verbs, n)} of each ${word(nouns, n >> 3)} follows the rules of this manual.`;

const files: readonly LongFile[] = [
  {
    name: 'source.ts',
    question: 'What does settleOverdueBatch do with an order whose payment was refused?',
    answer: 'moves it to the graveyard queue',
    block: n => method(n, `export async function ${nameOf(n)}(order: Order, limit: number)`),
    place:
      'export async function settleOverdueBatch(order: Order) {\n  // A refused one:\n  return graveyard.push(order); // moves it to the graveyard queue\n}',
    blocks: 5_000,
  },
  {
    name: 'generated.ts',
    question: 'Please explain how `quarantineVendor` decides which customer is blocked',
    answer: 'three strikes within a fortnight',
    block: n => method(n, `export async function ${nameOf(n)}(order: Order, limit: number)`),
    place:
      'export function quarantineVendor(customer: Customer) {\n  return customer.strikes >= 3; // three strikes within a fortnight\n}',
    blocks: 6_500,
  },
  {
    name: 'words.go',
    question: 'Where is the waiting time doubled after the vendor throttles a request?',
    answer: 'pause *= 2',
    block: n =>
      `// ${title(nameOf(n))} sends a request and stores the time of its retry.\nfunc ${title(nameOf(n))}(request Request) error {\n\tif err := vendor.Send(request); err != nil {\n\t\treturn retry(request, time.Now())\n\t}\n\treturn nil\n}`,
    place:
      '// throttled: each time the waiting grows.\nfunc backOff(pause time.Duration) time.Duration {\n\tpause *= 2 // doubled\n\treturn pause\n}',
    blocks: 4_000,
  },
  {
    name: 'ledger.py',
    question: 'How does the ledger carry over unused vacation days of an account?',
    answer: 'min(unused, 5)',
    block: n =>
      `    def ${word(verbs, n)}_${word(nouns, n >> 2)}_${n}(self, account, days):\n        """Count the days of an account in the ledger."""\n        used = self.ledger.count(account, days)\n        return self.over(used, ${n})`,
    place:
      '    def carry_over_vacation(self, account, unused):\n        """Unused vacation: at most a week."""\n        return min(unused, 5)',
    blocks: 5_000,
  },
  {
    name: 'manual.md',
    question: 'What does section 214.7 of the manual say about the retention of reports?',
    answer: 'eleven years and a day',
    block: n =>
      `## ${Math.floor(n / 9) + 1}.${(n % 9) + 1} Retention of ${word(nouns, n)}s\n\n${sentence(n)} ${sentence(n + 1)}\n\n${sentence(n + 2)}\n`,
    place:
      '## 1214.7 Retention\n\nNot this one.\n\n## 214.7 Retention of reports\n\nThey are kept for eleven years and a day.\n',
    blocks: 1_900,
  },
  {
    name: 'guide.md',
    question: 'How are stroopwafel orders shipped to a customer, and who pays?',
    answer: 'the baker pays the courier',
    block: n =>
      `# Orders of kind ${n}\n\n${sentence(n)}\n\nAn order is shipped to the customer who pays for it. ${sentence(n + 3)}\n`,
    place: `# Stroopwafel orders\n\n${Array.from({ length: 40 }, (_, n) => `${sentence(n)}\n`).join('\n')}\nAll said, the baker pays the courier.\n`,
    blocks: 1_900,
  },
  {
    name: 'server.log',
    question: 'Why did the request 48213077 of the account fail?',
    answer: 'disk quota of tenant blue exhausted',
    block: n =>
      `2026-11-0${(n % 9) + 1}T10:00:00Z INFO request ${10_000_000 + n * 37} of account ${n % 400} done in ${n % 90} ms`,
    place: '2026-11-07T10:00:01Z WARN request 48213077 of account 12: disk quota of tenant blue exhausted',
    blocks: 9_000,
  },
  {
    name: 'settings.yaml',
    question: 'Which timeout has the checkout service in eu-west-3?',
    answer: 'timeout: 7350',
    block: n =>
      `service-${n}:\n  region: eu-west-${(n % 2) + 1}\n  timeout: ${1_000 + (n % 50)}\n  retry: ${n % 5}\n  account: ${word(nouns, n)}`,
    place: 'checkout:\n  region: eu-west-3\n  timeout: 7350\n  retry: 9\n  account: shop',
    blocks: 6_000,
  },
  {
    name: 'customers.csv',
    question: 'What is the credit limit of the customer Ilse Vandenbroucke?',
    answer: 'Ilse Vandenbroucke;Gent;81250',
    block: n =>
      `${n};${word(['Anna', 'Ben', 'Ilse', 'Carl'], n)} ${word(['Maes', 'Jansen', 'Vos', 'Peeters'], n >> 2)};${word(['Gent', 'Brugge', 'Luik'], n)};${(n * 131) % 9_000};customer;credit`,
    place: '77;Ilse Vandenbroucke;Gent;81250;customer;credit',
    blocks: 9_000,
  },
  {
    name: 'novel.txt',
    question: 'What did Quillon give to the lighthouse keeper, and what was said of it at the end?',
    answer: 'a compass that points south',
    block: n =>
      `${sentence(n)} At the end of the day somebody said what was to be said of it, and ${word(nouns, n)} after ${word(nouns, n + 1)} was given to whom it belonged.`,
    place:
      'In the rain Quillon climbed to the lighthouse keeper.\n\nFor a while there was only the wind.\n\n"Take it," and it was a compass that points south.',
    blocks: 2_200,
  },
];

let vendor: FakeVendor;
let project: TempProject;
let polylogue: TestProduct;
const seeds = [11, 47];
const pathOf = ({ name }: LongFile, seed: number) => `seed${seed}/${name}`;

function textOf({ block, place, blocks }: LongFile, depth: number): string {
  const all = Array.from({ length: blocks }, (_, n) => block(n));
  all.splice(Math.floor(depth * blocks), 0, place);
  return all.join('\n');
}

beforeAll(async () => {
  vendor = await startOpenAi({ window });
  const all: Record<string, string> = {};
  for (const seed of seeds) {
    const random = seededRandom(seed);
    for (const file of files) all[pathOf(file, seed)] = textOf(file, random.fraction());
  }
  project = await tempProject(all);
  polylogue = await testProduct({
    root: project.root,
    env: {
      CUSTOM_API_URL: vendor.url,
      CUSTOM_API_KEY: 'test-key',
      CUSTOM_MODEL_NAME: 'any',
      CUSTOM_CONTEXT_WINDOW: String(window),
      DEFAULT_MODEL: 'custom:any',
      MAX_FILE_SIZE_MB: '8',
    },
  });
}, 120_000);

afterAll(async () => {
  await polylogue.close();
  await vendor.close();
  await project.dispose();
});

it.each(seeds)(
  'shows the place that answers at least nine of ten questions about long files, seed %i',
  async seed => {
    const missed: string[] = [];
    for (const file of files) {
      const answer = await polylogue.call('chat', { prompt: file.question, absolute_file_paths: [pathOf(file, seed)] });
      expect(answer.isError, JSON.stringify(answer.error)).toBe(false);
      const sent = vendor.requests.at(-1)!.messages.map(message => message.text);
      expect(sent.join('\n').length).toBeLessThan(window * 4);
      if (!sent.some(text => text.includes(file.answer))) missed.push(file.name);
    }
    const found = files.length - missed.length;
    console.log(
      `seed ${seed}: the place was in the prompt in ${found} of ${files.length}${missed.length > 0 ? `; not in ${missed.join(', ')}` : ''}`,
    );
    expect(found).toBeGreaterThanOrEqual(9);
  },
  120_000,
);
