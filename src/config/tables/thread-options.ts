import type { OptionSpec } from '../../domain/option.ts';

/** How long threads live, and where. */
export const threadOptions = {
  store: {
    env: ['POLYLOGUE_STORE'],
    flag: 'store',
    type: 'string',
    default: 'sqlite',
    choices: ['sqlite', 'memory'],
    doc: 'Where threads live: a database file that outlasts the process, or its memory alone.',
    group: 'Threads',
    operatorOnly: true,
  },
  private: {
    env: ['POLYLOGUE_PRIVATE'],
    flag: 'private',
    type: 'boolean',
    default: false,
    doc: 'Writes nothing to disk: threads live in memory and end with the process.',
    group: 'Threads',
    operatorOnly: true,
  },
  conversationTimeoutHours: {
    env: ['CONVERSATION_TIMEOUT_HOURS'],
    type: 'number',
    min: 0.01,
    max: 87_600,
    fractional: true,
    doc: 'Hours that a thread lives after its last use; unset: 720 in the database, 3 in memory.',
    group: 'Threads',
  },
  maxConversationTurns: {
    env: ['MAX_CONVERSATION_TURNS'],
    type: 'number',
    default: 100,
    min: 2,
    max: 100_000,
    doc: 'Turns after which the older part of a thread is summed up; a thread is never refused for its length.',
    group: 'Threads',
  },
  compactionModel: {
    env: ['COMPACTION_MODEL'],
    type: 'string',
    default: 'auto',
    doc: 'Who sums up the older part of a long thread: a model by its name; `auto` for a quick, cheap one of the provider that is asked anyway; `off` for none, an extract is made instead.',
    group: 'Threads',
    operatorOnly: true,
  },
} as const satisfies Record<string, OptionSpec>;
