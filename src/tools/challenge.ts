import { z } from 'zod';
import { defineAction } from '../calls/tool.ts';

export const challenge = defineAction({
  name: 'challenge',
  title: 'Challenge a claim',
  description: 'Use when the user doubts or contradicts you: weigh the claim on its merits before agreeing.',
  toolset: 'core',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: { prompt: z.string().min(1).describe('The claim, verbatim') },
  renamed: { statement: 'prompt', question: 'prompt' },
  run: async ({ prompt }) => ({
    status: 'challenge_accepted',
    original_statement: prompt,
    challenge_prompt: [
      'A second look, before any agreement. This was said:',
      `> ${prompt.replaceAll('\n', '\n> ')}`,
      'Judge it as if a stranger had said it about a stranger’s work:',
      '1. Is it true? Name what speaks for it and what against; look it up in the code or the facts where you can.',
      '2. Is it whole? Say what it leaves out that would change the verdict.',
      '3. Does its conclusion follow from its reasons?',
      'If it is wrong, say where and why, plainly and with evidence. If it is right, say what makes it right. If it is partly so, draw the line. Keep to the point.',
    ].join('\n\n'),
    instructions:
      'Put challenge_prompt to yourself now and answer it to the user. Do not begin by agreeing or apologising: begin with what you found.',
  }),
});
