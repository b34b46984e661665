import { z } from 'zod';
import { defineAction } from '../calls/tool.ts';

export const apilookup = defineAction({
  name: 'apilookup',
  title: 'API lookup',
  description: 'Use before relying on memory of an API, SDK, library or OS. Returns search steps, not the docs.',
  toolset: 'code',
  effects: { writes: false, destroys: false, network: false, idempotent: true },
  fields: { prompt: z.string().min(1).describe('What to look up') },
  renamed: { question: 'prompt', query: 'prompt' },
  run: async ({ prompt }, { now }) => ({
    status: 'web_lookup_needed',
    instructions: [
      `Today is ${new Date(now).toISOString().slice(0, 10)}. What you remember of APIs is older: look up user_prompt on the web now, before you answer or write code.`,
      '1. Search with your own web search, in a separate sub-task if you can start one, so that only the result comes back here. Do not call apilookup again for this question. Without any web search, say so to the user, and mark what you answer from memory as unchecked.',
      '2. Settle the version first: for an API of an operating system, the release of that system that is current today; for a library or a service, its newest stable release, and the one that this project pins.',
      '3. Prefer first-hand sources: official documentation, release notes and changelogs, the package registry, the source repository. A blog or a forum post counts only where those are silent, and only with its date.',
      '4. Look for what changed: deprecations, removals, renamed options, migration guides, known security problems.',
      '5. Two to four searches are enough. Stop as soon as the answer is certain; if it stays uncertain, say what is still open.',
      '6. Answer with the version, the signature or setting itself, a minimal example, what to avoid, and a link to each source.',
    ].join('\n'),
    user_prompt: prompt,
  }),
});
