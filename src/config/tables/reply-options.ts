import type { OptionSpec } from '../../core/option.ts';

/** How replies look and how long they are. */
export const replyOptions = {
  locale: {
    env: ['LOCALE'],
    flag: 'locale',
    type: 'string',
    doc: 'The language that models answer in, such as `fr-FR`; unset: that of the question.',
    group: 'Replies',
  },
  replyFormat: {
    env: ['REPLY_FORMAT'],
    flag: 'reply-format',
    type: 'string',
    default: 'json',
    choices: ['json', 'structured', 'markdown'],
    doc: 'How replies look: one JSON text, the same with `structuredContent` beside it, or Markdown.',
    group: 'Replies',
  },
  maxMcpOutputTokens: {
    env: ['MAX_MCP_OUTPUT_TOKENS'],
    type: 'number',
    default: 25_000,
    min: 1_000,
    max: 10_000_000,
    doc: 'The most tokens of one reply; what is longer is cut and can be read on page by page.',
    group: 'Replies',
  },
  mcpPromptSizeLimit: {
    env: ['MCP_PROMPT_SIZE_LIMIT'],
    type: 'number',
    min: 1_000,
    max: 960_000,
    doc: 'The most characters of one text field of a call; unset: 2.4 for each token of MAX_MCP_OUTPUT_TOKENS, which is 60,000.',
    group: 'Replies',
  },
} as const satisfies Record<string, OptionSpec>;
