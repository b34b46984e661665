import { relative } from 'node:path';
import { z } from 'zod';
import { printablePath, safeCut } from '../../../core/text.ts';
import { isSkip } from '../../../files/skip.ts';
import { findFiles, findText } from '../../../workspace/find-files.ts';
import type { AgentTool } from '../../modes/agent/agent.ts';
import { hand } from '../../modes/agent/local-tools/local-tool.ts';
import { type HandParts, pathIn, refused } from './hand-parts.ts';

const mostFound = 500;
const mostMatches = 200;
const longestMatch = 300;
const folder = z.string().describe('Folder; default: the project').optional();

/** Hands that find files and places in them. */
export function searchingHands(parts: HandParts): AgentTool[] {
  const { sandbox, root } = parts;
  const hidden = async (text: string) => (await parts.mask(text, parts.scope)).text;
  const shown = (path: string) => printablePath(relative(root, path) || '.');
  return [
    hand({
      name: 'glob',
      description:
        'Files whose path below a folder matches, such as src/**/*.ts. Ignored and build files are left out.',
      effect: 'read',
      fields: { pattern: z.string().min(1).max(300), path: folder },
      async run({ pattern, path = '.' }, { signal }) {
        const found = await findFiles(sandbox, { start: pathIn(parts, path), glob: pattern, signal });
        if (isSkip(found)) throw refused(found);
        if (found.length === 0) return 'No file matches.';
        const more = found.length > mostFound ? [`… and ${found.length - mostFound} more`] : [];
        return [...found.slice(0, mostFound).map(shown), ...more].join('\n');
      },
    }),
    hand({
      name: 'search_text',
      description: 'Lines that hold one of the texts, as file:line. The texts stand for themselves: no patterns.',
      effect: 'read',
      fields: {
        texts: z.array(z.string().min(1).max(500)).min(1).max(20),
        path: folder,
        glob: z.string().max(300).optional(),
        same_case: z.boolean().optional(),
      },
      async run({ texts, path = '.', glob, same_case: sameCase = false }, { signal }) {
        const request = { start: pathIn(parts, path), words: texts, sameCase, most: mostMatches, signal };
        const found = await findText(sandbox, { ...request, ...(glob !== undefined && { glob }) }, hidden);
        if (isSkip(found)) throw refused(found);
        if (found.matches.length === 0) return 'Nothing was found.';
        const lines = found.matches.map(
          ({ path: file, line, text }) => `${shown(file)}:${line}: ${safeCut(text.trim(), longestMatch)}`,
        );
        return [...lines, ...(found.complete ? [] : [`… only the first ${mostMatches} are shown`])].join('\n');
      },
    }),
  ];
}
