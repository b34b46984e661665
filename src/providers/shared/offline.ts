import { type ProviderDefinition, plainModel } from '../../models/provider.ts';

/**
 * A provider without a network: its model answers with an exact account of what it was given. There are two of them under
 * two names, so that a thread can be handed from one vendor to another without any key.
 */
export function offlineProvider(side: 'east' | 'west'): ProviderDefinition {
  const vendor = `offline-${side}`;
  const info = plainModel({
    provider: vendor,
    id: `echo-${side}`,
    window: 200_000,
    maxOutput: 32_000,
    input: ['text', 'image'],
    price: { in: 0, out: 0 },
    score: 1,
  });
  return {
    id: vendor,
    names: [],
    title: `Offline account (${side})`,
    docs: {
      endpoint: 'none: it answers in this process',
      quirks: [
        'Its model answers with an exact account of what it was given; there are two, for threads that change hands.',
      ],
      source: 'its own: no vendor is involved',
    },
    options: {},
    onlyByName: true,
    configured: () => true,
    models: () => [info],
    local: () => true,
    async connect() {
      const { offlineModel } = await import('./offline-model.ts');
      return {
        languageModel: ({ id, window }) => offlineModel({ vendor, id, window }),
        providerOptions: () => ({}),
        tailRole: () => 'system',
      };
    },
  };
}
