import { expect } from 'vitest';
import type { ModelInfo } from '../../src/core/model.ts';
import type { ProviderDefinition } from '../../src/models/provider.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';
import type { ProviderCase } from './provider-suite.ts';

/**
 * The suite's case for a provider that nobody wrote one for: it is held to speak OpenAI's chat dialect, with a key and a base
 * address as its settings. One that does not fails the suite, until it gets a case and a fake of its own.
 */
export function derivedCase(definition: ProviderDefinition, catalogue: readonly ModelInfo[]): ProviderCase {
  const { id, options } = definition;
  const named = (test: (option: (typeof options)[string]) => boolean) =>
    Object.keys(options).find(name => options[name] && test(options[name]));
  const key = named(({ secret }) => secret === true);
  const address = named(({ type }) => type === 'url');
  const row = catalogue.find(({ provider, status }) => provider === id && status === 'active');
  if (key === undefined || address === undefined)
    throw new Error(`Provider ${id} has no key or no base address among its options, and no case of its own.`);
  if (!row) throw new Error(`Provider ${id} has no models in the catalogue, and no case of its own.`);
  return {
    name: `${id} (as OpenAI's chat)`,
    definition,
    start: startOpenAi,
    settings: (url, value = 'test-key') => ({ [address]: url, [key]: value }),
    model: { ...row, input: ['text', 'image'] },
    path: '/v1/chat/completions',
    headers: { authorization: 'Bearer test-key' },
    body: {
      messages: [
        { role: 'system', content: 'You are careful.' },
        { role: 'user', content: expect.stringMatching(/^What is this\?/) },
      ],
    },
    thinking: row.efforts.slice(-1).map(effort => ({ ask: { effort }, body: { reasoning_effort: effort } })),
    temperature: { temperature: 0.4 },
    imageBody: base64 => ({
      messages: [
        {
          role: 'user',
          content: [{ type: 'text' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }],
        },
      ],
    }),
    roles: ['system', 'user'],
    tells: { cacheWrite: true },
    marks: false,
    keyName: options[key]?.env[0] ?? '',
  };
}
