import { z } from 'zod';
import { hiddenFields, modelsField } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

export const prompt = defineTool({
  name: 'prompt',
  title: 'Prompt models',
  description: 'Send the same text to several models at once; returns each answer separately.',
  toolset: 'wrapper',
  effects: { writes: false, destroys: false, network: true, idempotent: false },
  fields: { text: z.string().min(1), models_prefixed_by_provider: modelsField.describe('provider:model[:effort]') },
  accepts: hiddenFields,
  renamed: { models: 'models_prefixed_by_provider', prompt: 'text' },
  mode: { kind: 'fanout', category: 'balanced', from: 'text', to: 'reply' },
});
