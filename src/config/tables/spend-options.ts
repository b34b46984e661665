import type { OptionSpec } from '../../core/option.ts';

function cap(env: string, flag: string, whose: string) {
  return {
    env: [env],
    flag,
    type: 'number',
    min: 0,
    fractional: true,
    doc: `US dollars that ${whose} may cost; what could cost more is refused before a model is asked. Unset: no limit.`,
    group: 'Spending',
    operatorOnly: true,
  } as const;
}

/** What may be spent, and how often a client may call. */
export const spendOptions = {
  maxCostPerRequest: cap(
    'MAX_COST_PER_REQUEST',
    'max-cost-per-request',
    'one call of a tool, all its models together,',
  ),
  maxCostPerThread: cap('MAX_COST_PER_THREAD', 'max-cost-per-thread', 'all calls on one thread'),
  maxCostPerDay: cap(
    'MAX_COST_PER_DAY',
    'max-cost-per-day',
    'all calls of one day (UTC), of all processes on one database,',
  ),
  allowUnpricedModels: {
    env: ['ALLOW_UNPRICED_MODELS'],
    type: 'boolean',
    default: false,
    doc: 'Asks models whose price nobody knows even under a limit on costs, as if they were free. Local ones always are.',
    group: 'Spending',
    operatorOnly: true,
  },
  rateLimits: {
    env: ['RATE_LIMITS'],
    flag: 'rate-limits',
    type: 'list',
    doc: 'Calls a minute that one client may make of a tool, such as `chat=10,analyze=5`; `on`: chat 10, analyze, codereview and debug 5, thinkdeep and precommit 3. Unset: any number.',
    group: 'Spending',
    operatorOnly: true,
  },
} as const satisfies Record<string, OptionSpec>;
