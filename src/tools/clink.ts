import { z } from 'zod';
import { defineTool } from '../calls/tool.ts';

export const clink = defineTool({
  name: 'clink',
  title: 'CLI link',
  description:
    'Let another agent with a command line (Gemini CLI, Codex, Claude Code, OpenCode…) work on a request here; it only reads.',
  toolset: 'agent',
  programs: ['claude', 'codex', 'gemini', 'agy', 'opencode'],
  effects: { writes: true, destroys: false, network: true, idempotent: false },
  fields: {
    /** Empty: prompt.txt among the files is the question. */
    prompt: z.string(),
    cli_name: z.string().describe('gemini, codex, claude, agy, opencode or your own').optional(),
    model: z.string().describe('Its model; absent: its own choice').optional(),
    role: z.string().describe('default, planner, codereviewer or your own').optional(),
    absolute_file_paths: z.array(z.string()).describe('Named to it, not included').optional(),
    allow_writes: z.boolean().describe('If the operator allows it').optional(),
    continuation_id: z.string().optional(),
  },
  writesBy: ['allow_writes'],
  accepts: { images: z.array(z.string()).optional() },
  renamed: { files: 'absolute_file_paths' },
  mode: { kind: 'externalCli' },
});
