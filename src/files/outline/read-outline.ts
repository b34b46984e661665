import { withTree } from './grammar.ts';
import type { Language } from './language.ts';
import type { Outline } from './outline.ts';
import { readGo } from './read-go.ts';
import { readPython } from './read-python.ts';
import { readTypescript } from './read-typescript.ts';
import { createSketch } from './sketch.ts';

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
