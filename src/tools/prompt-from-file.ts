import { hiddenFields, modelsField, promptFile, promptFileNames } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

export const promptFromFile = defineTool({
  name: 'prompt_from_file',
  title: 'Prompt models from file',
  description: "Send a file's text to several models at once; returns the answers.",
  toolset: 'wrapper',
  effects: { writes: false, destroys: false, network: true, idempotent: false },
  fields: { file_path: promptFile, models_prefixed_by_provider: modelsField },
  accepts: hiddenFields,
  renamed: promptFileNames,
  mode: { kind: 'fanout', category: 'balanced', from: 'file', to: 'reply' },
});
