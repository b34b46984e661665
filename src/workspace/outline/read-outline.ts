import { withTree } from '../../files/outline/grammar.ts';
import type { Language } from '../../files/outline/language.ts';
import { readGo } from './go.ts';
import type { Outline } from './outline.ts';
import { createSketch } from './outline-builder.ts';
import { readPython } from './python.ts';
import { readTypescript } from './typescript.ts';

const readers = {
  typescript: readTypescript,
  tsx: readTypescript,
  javascript: readTypescript,
  python: readPython,
  go: readGo,
} as const;

/** What a source text declares and uses. Broken source is read as far as it can be understood. */
export function readOutline(path: string, language: Language, text: string): Promise<Outline> {
  return withTree(language, text, ({ rootNode }) => {
    const sketch = createSketch(path, language, rootNode);
    readers[language](sketch, rootNode);
    return sketch.outline;
  });
}
