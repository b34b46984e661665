import { z } from 'zod';
import { continuationId, filePaths, hiddenFields, modelField, webSearchField } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';

const { use_websearch: _advertised, ...hidden } = hiddenFields;

export const chat = defineTool({
  name: 'chat',
  title: 'Chat',
  description:
    'Ask another model for a second opinion, ideas, explanations or code. Remembers the thread and its files.',
  toolset: 'core',
  effects: { writes: false, destroys: false, network: true, idempotent: false },
  fields: {
    /** Empty: prompt.txt among the files is the question. */
    prompt: z.string().describe('Question; pass files instead of pasting code'),
    absolute_file_paths: filePaths,
    images: z.array(z.string()).describe('Paths or data URLs').optional(),
    use_websearch: webSearchField,
    model: modelField,
    continuation_id: continuationId,
  },
  writesBy: ['working_directory_absolute_path'],
  accepts: { ...hidden, working_directory_absolute_path: z.string().describe('For generated code').optional() },
  renamed: { files: 'absolute_file_paths', question: 'prompt', working_directory: 'working_directory_absolute_path' },
  mode: {
    kind: 'prompt',
    category: 'fast_response',
    effort: 'medium',
    generatesCode: true,
    role: [
      'Answer the newest question above, as a peer would.',
      'Work out what is really being asked. Give your view first, then the reasons, the edge cases and what to do next.',
      'Refer to code as file:line with a few words of it. Where the conversation already settled something, build on it; do not repeat it.',
      'At most 400 words unless code is asked for. If an important fact is missing, ask for it at the end: the caller can continue this thread.',
    ].join('\n'),
  },
});
