import { createHash } from 'node:crypto';
import { relative } from 'node:path';
import { z } from 'zod';
import { sha256 } from '../../../../core/ids.ts';
import { linesBetween, numberLines, printablePath } from '../../../../core/text.ts';
import { isSkip } from '../../../../files/skip.ts';
import { parsePathReference } from '../../../../workspace/paths.ts';
import { readTextFile } from '../../../../workspace/read-file.ts';
import { type HandParts, pathIn, refused } from '../../../agent/hands/hand-parts.ts';
import type { AgentTool } from '../agent.ts';
import { hand } from './local-tool.ts';

const mostEntries = 1_000;
const summaryTokens = 2_000;
const folder = z.string().describe('Folder; default: the project').optional();

/** Hands that look at files and change nothing. */
export function readingHands(parts: HandParts): AgentTool[] {
  const { sandbox, root } = parts;
  const hidden = async (text: string) => (await parts.mask(text, parts.scope)).text;
  const shown = (path: string) => printablePath(relative(root, path) || '.');

  async function read(path: string, signal: AbortSignal) {
    const reference = parsePathReference(path, root, parts.home);
    if (isSkip(reference)) throw refused(reference);
    const outcome = await readTextFile(sandbox, reference, { maxBytes: parts.maxFileBytes, signal });
    if (!outcome.ok) throw refused(outcome.skip);
    const { file, range } = outcome;
    parts.emit({ type: 'files.read', reqId: parts.reqId, tool: parts.tool, embedded: [file.path], skipped: [] });
    // Before anything stands between its lines: a key of several lines would not be known any more.
    return { file, range, text: await hidden(file.text) };
  }

  return [
    hand({
      name: 'read_file',
      description: 'A text file with line numbers, whole or some lines. You are told when it changes later.',
      effect: 'read',
      fields: { path: z.string().min(1), from: z.int().min(1).optional(), to: z.int().min(1).optional() },
      async run({ path, from, to }, { signal }) {
        const { file, range, text } = await read(path, signal);
        const first = from ?? range?.from ?? 1;
        const last = to ?? range?.to ?? file.lines;
        const lines = first === 1 && last >= file.lines ? text : linesBetween(text, first, last);
        const head = `${shown(file.path)}, lines ${first} to ${Math.min(last, file.lines)} of ${file.lines}`;
        return { text: `${head}\n${numberLines(lines, first)}`, seen: [file.path] };
      },
    }),
    hand({
      name: 'list_dir',
      description: 'The entries of a folder.',
      effect: 'read',
      fields: { path: folder },
      async run({ path = '.' }) {
        const listing = await sandbox.list(pathIn(parts, path), mostEntries);
        if (isSkip(listing)) throw refused(listing);
        const names = listing.entries.map(({ name, kind }) => printablePath(name) + (kind === 'directory' ? '/' : ''));
        return [`${shown(listing.path)}:`, ...names, ...(listing.complete ? [] : ['… and more'])].join('\n');
      },
    }),
    hand({
      name: 'summarize_file',
      description: 'What a long file declares, or says, in short.',
      effect: 'read',
      fields: { path: z.string().min(1) },
      async run({ path }, { signal }) {
        const { file, text } = await read(path, signal);
        const hash = sha256(createHash('sha256').update(text).digest('hex'));
        const short = await parts.condenser.condense({ path: file.path, text, hash }, summaryTokens, signal);
        return short ? `${short.form} of ${shown(file.path)}:\n${short.text}` : text;
      },
    }),
  ];
}
