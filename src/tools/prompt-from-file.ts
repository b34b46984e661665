import { hiddenFields, modelsField, promptFile, promptFileNames } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

export const promptFromFile = defineTool({
  name: 'prompt_from_file',
  title: 'Ask many from a file',
  description: 'Send the text of a file to several models at once; the answers come in the reply.',
  toolset: 'wrapper',
  effects: { writes: false, destroys: false, network: true, idempotent: false },
  fields: { file_path: promptFile, models_prefixed_by_provider: modelsField },
  accepts: hiddenFields,
  renamed: promptFileNames,
  mode: { kind: 'fanout', category: 'balanced', from: 'file', to: 'reply' },
});
