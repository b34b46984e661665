import { z } from 'zod';
import { hiddenFields, modelsField, outputFields, promptFile, promptFileNames } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

export const promptFromFileToFile = defineTool({
  name: 'prompt_from_file_to_file',
  title: 'Prompt models to files',
  description: "Send a file's text to several models at once; writes each answer to a file.",
  toolset: 'wrapper',
  effects: { writes: true, destroys: true, network: true, idempotent: false },
  fields: {
    file_path: promptFile,
    models_prefixed_by_provider: modelsField,
    ...outputFields,
    output_extension: z.string().describe('Default: md').optional(),
    output_path: z.string().describe('Only with one model').optional(),
  },
  accepts: hiddenFields,
  renamed: { ...promptFileNames, abs_output_dir: 'output_dir' },
  mode: { kind: 'fanout', category: 'balanced', from: 'file', to: 'files' },
});
