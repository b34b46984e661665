import { z } from 'zod';
import { printablePath } from '../../../core/text.ts';
import type { ChangedFile } from '../../../workspace/git/changes.ts';
import type { AgentTool } from '../../modes/agent/agent.ts';
import { hand } from '../../modes/agent/local-tools/local-tool.ts';
import { type HandParts, pathIn } from './hand-parts.ts';

const mostCommits = 50;
const usualCommits = 10;

/** Hands that look at the repository. */
export function gitHands({ git, history, ...parts }: HandParts): AgentTool[] {
  const { root, scope } = parts;
  return [
    hand({
      name: 'git_diff',
      description: 'What was changed and is not committed; with compare_to, since a branch, tag or commit.',
      effect: 'read',
      fields: { path: z.string().optional(), compare_to: z.string().optional() },
      async run({ path = '.', compare_to: compareTo }, { signal }) {
        const request = { path, root, staged: true, unstaged: true, scope, signal };
        const { repositories, notes } = await git.changes({
          ...request,
          ...(compareTo !== undefined && { compareTo }),
        });
        const changes = repositories.flatMap(({ files }) => files.map(changeText));
        return [...notes, ...(changes.length > 0 ? changes : ['Nothing was changed.'])].join('\n');
      },
    }),
    hand({
      name: 'git_log',
      description: 'The newest commits with their messages; of one file with path.',
      effect: 'read',
      fields: {
        path: z.string().optional(),
        ref: z.string().optional(),
        most: z.int().min(1).max(mostCommits).optional(),
      },
      run: ({ path, ref, most = usualCommits }, { signal }) =>
        history.log({
          folder: root,
          scope,
          signal,
          most,
          ...(ref !== undefined && { ref }),
          ...(path !== undefined && { path: pathIn({ ...parts, git, history }, path) }),
        }),
    }),
    hand({
      name: 'git_show',
      description: 'One commit: its message and what it changed.',
      effect: 'read',
      fields: { ref: z.string().min(1) },
      run: ({ ref }, { signal }) => history.show({ folder: root, scope, signal, ref }),
    }),
  ];
}

function changeText({ path, area, status, patch, withheld }: ChangedFile): string {
  return `${area}, ${status}: ${printablePath(path)}\n${patch ?? withheld ?? ''}`;
}
