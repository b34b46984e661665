import type { OptionSpec } from '../../core/option.ts';

/** What the AI manager may do by itself, and how much a search of the web brings. */
export const searchOptions = {
  aiManager: {
    env: ['AI_MANAGER'],
    type: 'string',
    choices: ['rules', 'model'],
    doc: 'What decides about a question whose kind its words leave open: rules alone, or a small model that is asked first (3 s at most, 2,000 characters of the question); unset: a model where a flash model is configured.',
    group: 'Models',
  },
  webSearch: {
    env: ['WEB_SEARCH'],
    flag: 'web-search',
    type: 'string',
    default: 'auto',
    choices: ['auto', 'asked', 'off'],
    doc: 'When models may search the web: for questions about now too (`auto`), only where a call says `use_websearch` (`asked`), or never. Most vendors charge for each search beside its tokens; costs and their limits count that only where the vendor tells what a call cost (xAI, OpenRouter).',
    group: 'Models',
  },
  webSearchMaxResults: {
    env: ['WEB_SEARCH_MAX_RESULTS'],
    type: 'number',
    default: 10,
    min: 1,
    max: 50,
    doc: 'The most results that one search hands to a model, where its vendor lets one say, and the most citations of a reply.',
    group: 'Models',
  },
  webSearchMaxRounds: {
    env: ['WEB_SEARCH_MAX_ROUNDS'],
    type: 'number',
    default: 3,
    min: 1,
    max: 3,
    doc: 'The most searches of one call, where the vendor lets one say.',
    group: 'Models',
  },
  webSearchContentSize: {
    env: ['WEB_SEARCH_CONTENT_SIZE'],
    type: 'string',
    default: 'medium',
    choices: ['low', 'medium', 'high'],
    doc: 'How much of the pages found a model is shown, where its vendor lets one say.',
    group: 'Models',
  },
} as const satisfies Record<string, OptionSpec>;
