import { join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { hashOf } from '../../../../core/ids.ts';
import { linesBetween, numberLines, printablePath, safeCut } from '../../../../core/text.ts';
import { findFiles, findText } from '../../../../workspace/find-files.ts';
import type { ChangedFile } from '../../../../workspace/git/changes.ts';
import { isIn, isSkip } from '../../../../workspace/paths.ts';
import { readTextFile } from '../../../../workspace/read-file.ts';
import { searchedRoots } from '../../../../workspace/sandbox.ts';
import type { AgentTool } from './agent-tool.ts';
import { defineLocalTool, type LocalToolServices, pathIn, refused } from './local-tool.ts';

const optionalText = z.string().optional();
const maxCommits = 50;
const usualCommits = 10;

/** Hands that look at the repository. */
export function gitTools(parts: LocalToolServices): AgentTool[] {
  const { git, history, root, scope } = parts;
  return [
    defineLocalTool({
      name: 'git_diff',
      description: 'What was changed and is not committed; with compare_to, since a branch, tag or commit.',
      effect: 'read',
      fields: { path: optionalText, compare_to: optionalText },
      async run({ path = '.', compare_to: compareTo }, { signal }) {
        const request = { path, root, compareTo, staged: true, unstaged: true, scope, signal };
        const { repositories, notes } = await git.changes(request);
        const changes = repositories.flatMap(({ files }) => files.map(changeText));
        return [...notes, ...(changes.length > 0 ? changes : ['Nothing was changed.'])].join('\n');
      },
    }),
    defineLocalTool({
      name: 'git_log',
      description: 'The newest commits with their messages; of one file with path.',
      effect: 'read',
      fields: { path: optionalText, ref: optionalText, most: z.int().min(1).max(maxCommits).optional() },
      run: ({ path, ref, most: max = usualCommits }, { signal }) =>
        history.log({ folder: root, scope, signal, max, ref, path: path === undefined ? path : pathIn(parts, path) }),
    }),
    defineLocalTool({
      name: 'git_show',
      description: 'One commit: its message and what it changed.',
      effect: 'read',
      fields: { ref: z.string().min(1) },
      run: ({ ref }, { signal }) => history.show({ folder: root, scope, signal, ref }),
    }),
  ];
}

const changeText = ({ path, area, status, patch, withheld }: ChangedFile): string =>
  `${area}, ${status}: ${printablePath(path)}\n${patch ?? withheld ?? ''}`;

/**
 * Answers a git command of a known form as the tools do that look at repositories: without what secret files hold, and without
 * starting anything that the repository names.
 */
export async function answerGit(
  { git, history, scope }: Pick<LocalToolServices, 'git' | 'history' | 'scope'>,
  argv: readonly string[],
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const [, what, ...words] = argv;
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  const options = words.slice(0, end).filter(word => word.startsWith('-'));
  const count = Number(options.find(option => /^-\d+$/.test(option))?.slice(1) ?? words[words.indexOf('-n') + 1]);
  const ref = words.slice(0, end).find((word, at) => !word.startsWith('-') && words[at - 1] !== '-n');
  if (what === 'show') return history.show({ folder, scope, signal, ref: ref ?? 'HEAD' });
  if (what === 'log') {
    const max = words.includes('-n') || options.some(option => /^-\d+$/.test(option)) ? count : usualCommits;
    return history.log({ folder, scope, signal, max, ref });
  }
  const isStatus = what === 'status';
  const onlyStaged = options.some(option => option === '--staged' || option === '--cached');
  const request = { path: '.', root: folder, staged: isStatus || onlyStaged, unstaged: !onlyStaged, scope, signal };
  const found = await git.changes({ ...request, compareTo: isStatus ? undefined : ref });
  const paths = words.slice(end + 1).map(path => resolve(folder, path));
  const isAsked = (path: string) => paths.length === 0 || paths.some(each => isIn(path, each));
  const namesOnly = isStatus || options.some(option => /^--(?:stat|name)/.test(option));
  const lines = found.repositories.flatMap(({ path: top, branch, files }) => [
    ...(isStatus && branch !== undefined ? [`On branch ${branch} of ${printablePath(top)}`] : []),
    ...files
      .filter(({ path, area }) => isAsked(join(top, path)) && (isStatus || area !== 'untracked'))
      .map(file => (namesOnly ? `${file.area}, ${file.status}: ${printablePath(file.path)}` : changeText(file))),
  ]);
  return [...found.notes, ...(lines.length > 0 ? lines : ['Nothing was changed.'])].join('\n');
}

const maxFound = 500;
const maxMatches = 200;
const maxMatchLength = 300;
const folder = z.string().describe('Directory; default: project root').optional();
const searched = z.string().describe('Directory; default: all roots').optional();
const maxEntries = 1_000;
const summaryTokens = 2_000;

async function readMasked(parts: LocalToolServices, path: string, signal: AbortSignal) {
  const { sandbox, root, home, maxFileBytes: maxBytes } = parts;
  const read = await readTextFile(sandbox, path, { root, home, maxBytes, signal });
  if (isSkip(read)) throw refused(read);
  const { file, range } = read;
  parts.emit({ type: 'files.read', reqId: parts.reqId, tool: parts.tool, embedded: [file.path], skipped: [] });
  // Before anything stands between its lines: a key of several lines would not be known any more.
  return { file, range, text: (await parts.mask(file.text, parts.scope)).text };
}

/** Where a search begins: in all roots where no directory is named. */
const startsOf = async (parts: LocalToolServices, path?: string): Promise<string[]> =>
  path === undefined ? searchedRoots(parts.sandbox, parts.root) : [pathIn(parts, path)];

/** Hands that look at files, find files and places in them, and change nothing. */
export function readTools(parts: LocalToolServices): AgentTool[] {
  const { sandbox, root } = parts;
  const hidden = async (text: string) => (await parts.mask(text, parts.scope)).text;
  const shown = (path: string) => printablePath(relative(root, path) || '.');
  return [
    defineLocalTool({
      name: 'read_file',
      description: 'A text file with line numbers, whole or some lines. You are told when it changes later.',
      effect: 'read',
      fields: { path: z.string().min(1), from: z.int().min(1).optional(), to: z.int().min(1).optional() },
      async run({ path, from, to }, { signal }) {
        const { file, range, text } = await readMasked(parts, path, signal);
        const first = from ?? range?.from ?? 1;
        const last = to ?? range?.to ?? file.lines;
        const lines = first === 1 && last >= file.lines ? text : linesBetween(text, first, last);
        const head = `${shown(file.path)}, lines ${first} to ${Math.min(last, file.lines)} of ${file.lines}`;
        return { text: `${head}\n${numberLines(lines, first)}`, seen: [file.path] };
      },
    }),
    defineLocalTool({
      name: 'list_dir',
      description: 'The entries of a directory.',
      effect: 'read',
      fields: { path: folder },
      async run({ path = '.' }) {
        const listing = await sandbox.list(pathIn(parts, path), maxEntries);
        if (isSkip(listing)) throw refused(listing);
        const names = listing.entries.map(({ name, kind }) => printablePath(name) + (kind === 'directory' ? '/' : ''));
        return [`${shown(listing.path)}:`, ...names, ...(listing.complete ? [] : ['… and more'])].join('\n');
      },
    }),
    defineLocalTool({
      name: 'summarize_file',
      description: 'What a long file declares, or says, in short.',
      effect: 'read',
      fields: { path: z.string().min(1) },
      async run({ path }, { signal }) {
        const { file, text } = await readMasked(parts, path, signal);
        const named = { path: file.path, text, hash: hashOf(text) };
        const short = await parts.fileShortener.condense(named, summaryTokens, signal);
        return short ? `${short.form} of ${shown(file.path)}:\n${short.text}` : text;
      },
    }),
    defineLocalTool({
      name: 'glob',
      description:
        'Files whose path below a directory matches, such as src/**/*.ts. Ignored and build files are left out.',
      effect: 'read',
      fields: { pattern: z.string().min(1).max(300), path: searched },
      async run({ pattern, path }, { signal }) {
        const found = await findFiles(sandbox, { starts: await startsOf(parts, path), glob: pattern, signal });
        if (isSkip(found)) throw refused(found);
        if (found.length === 0) return 'No file matches.';
        const more = found.length > maxFound ? [`… and ${found.length - maxFound} more`] : [];
        return [...found.slice(0, maxFound).map(shown), ...more].join('\n');
      },
    }),
    defineLocalTool({
      name: 'search_text',
      description: 'Lines that hold one of the texts, as file:line. The texts are literal: no patterns.',
      effect: 'read',
      fields: {
        texts: z.array(z.string().min(1).max(500)).min(1).max(20),
        path: searched,
        glob: z.string().max(300).optional(),
        same_case: z.boolean().optional(),
      },
      async run({ texts, path, glob, same_case: sameCase = false }, { signal }) {
        const limits = { max: maxMatches, maxBytes: parts.maxFileBytes, signal };
        const request = { starts: await startsOf(parts, path), words: texts, glob, sameCase, ...limits };
        const found = await findText(sandbox, request, hidden);
        if (isSkip(found)) throw refused(found);
        const lines = found.matches.map(
          ({ path: file, line, text }) => `${shown(file)}:${line}: ${safeCut(text.trim(), maxMatchLength)}`,
        );
        if (lines.length === 0) lines.push('Nothing was found.');
        if (!found.complete) lines.push(`… only the first ${maxMatches} are shown`);
        const left = safeCut(found.unsearched.map(shown).join(', '), 1_000);
        return [...lines, ...(left ? [`… not searched, too large or not to be read: ${left}`] : [])].join('\n');
      },
    }),
  ];
}
