/** Records docs/debug-conversation.md: a debug session through a real client and server. Only the expert's answer is scripted. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startOpenAi } from '../../test/support/vendors/start-open-ai.ts';
import { startSession } from '../demo/session.ts';

const code = `export interface Item {
  price: number;
  quantity: number;
}

/** Sum of the cart in cents, with 10 % off from the third item on. */
export function total(items: Item[]): number {
  let sum = 0;
  for (let n = 0; n <= items.length; n++) {
    const item = items[n];
    sum += item.price * item.quantity * (n >= 3 ? 0.9 : 1);
  }
  return Math.round(sum);
}
`;

const expert = {
  status: 'analysis_complete',
  summary: 'The loop runs one step too far, and the discount begins one item too late.',
  hypotheses: [
    {
      name: 'Loop bound',
      confidence: 'High',
      root_cause: 'n <= items.length reads items[items.length], which is undefined.',
      evidence: 'cart.ts:9',
      minimal_fix: 'n < items.length',
      regression_check: 'An empty cart must sum to 0.',
    },
    {
      name: 'Discount index',
      confidence: 'Medium',
      root_cause: 'The third item has index 2; n >= 3 begins with the fourth.',
      evidence: 'cart.ts:6, cart.ts:11',
      minimal_fix: 'n >= 2',
      regression_check: 'Three items: only the third is cheaper.',
    },
  ],
};

const place = await realpath(await mkdtemp(join(tmpdir(), 'polylogue-record-')));
const vendor = await startOpenAi();
const page: string[] = [
  '# A debug conversation',
  '',
  'Recorded by `node scripts/record/debug-conversation.ts` through the official MCP client and a spawned server. The vendor is a',
  'local stand-in that speaks OpenAI’s wire format, so the expert’s answer is scripted; everything else is what the server did.',
  'Long replies are shortened to the keys that matter here.',
];

try {
  await writeFile(join(place, 'cart.ts'), code);
  vendor.byDefault({ answer: JSON.stringify(expert) });
  const session = await startSession({
    args: [],
    cwd: place,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: place,
      POLYLOGUE_HOME: join(place, 'home'),
      PROJECT_ROOT: place,
      LOG_LEVEL: 'warning',
      OPENAI_API_KEY: 'test-key',
      OPENAI_BASE_URL: vendor.url,
      DEFAULT_MODEL: 'gpt-5-mini',
    },
  });
  const ask = async (text: string, args: Record<string, unknown>, keys: string[]) => {
    const reply = await session.call('debug', args);
    page.push('', `## ${text}`, '', block({ tool: 'debug', arguments: args }), '', block(pick(reply, keys)));
    return reply;
  };

  const first = await ask(
    'Step 1: the agent says what it sees',
    {
      step: 'total() throws "Cannot read properties of undefined (reading \'price\')" for every cart.',
      step_number: 1,
      total_steps: 2,
      next_step_required: true,
      findings: 'It throws even for an empty cart, so it is not the data.',
      relevant_files: ['cart.ts'],
      confidence: 'low',
    },
    ['status', 'required_actions', 'next_steps', 'continuation_id', 'investigation_status'],
  );
  await ask(
    'Step 2: the agent read the code, has a hypothesis, and lets an expert check it',
    {
      step: 'Read cart.ts; the loop looks one too long.',
      step_number: 2,
      total_steps: 2,
      next_step_required: false,
      findings: 'cart.ts:9 loops while n <= items.length.',
      hypothesis: 'Off by one in the loop bound.',
      confidence: 'high',
      continuation_id: first.continuation_id,
    },
    ['status', 'expert_analysis', 'complete_investigation', 'metadata'],
  );
  await session.close();
} finally {
  await vendor.close();
  await rm(place, { recursive: true, force: true });
}

const target = new URL('../../docs/debug-conversation.md', import.meta.url);
await writeFile(target, `${page.join('\n')}\n`);
console.log('wrote docs/debug-conversation.md');

function pick(reply: Record<string, unknown>, keys: string[]): Record<string, unknown> {
  return Object.fromEntries(keys.flatMap(key => (reply[key] === undefined ? [] : [[key, reply[key]]])));
}

function block(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2).replaceAll(`${place}/`, '').replaceAll(place, '.');
  return `\`\`\`json\n${text}\n\`\`\``;
}
