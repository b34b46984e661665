import { z } from 'zod';
import { defineTool } from '../calls/tool.ts';

export const clink = defineTool({
  name: 'clink',
  title: 'Run CLI agent',
  description: 'Run a CLI agent (Gemini CLI, Codex, Claude Code, OpenCode…) on a request here. Read-only by default.',
  toolset: 'agent',
  programs: ['claude', 'codex', 'gemini', 'agy', 'opencode'],
  effects: { writes: true, destroys: false, network: true, idempotent: false },
  fields: {
    /** Empty: prompt.txt among the files is the question. */
    prompt: z.string(),
    cli_name: z.string().describe('gemini, codex, claude, agy, opencode or custom').optional(),
    model: z.string().describe('Its model; absent: its own choice').optional(),
    role: z.string().describe('default, planner, codereviewer or custom').optional(),
    absolute_file_paths: z.array(z.string()).describe('Passed as paths, not contents').optional(),
    allow_writes: z.boolean().describe('Needs CLI_ALLOW_WRITES').optional(),
    continuation_id: z.string().optional(),
  },
  writesBy: ['allow_writes'],
  accepts: { images: z.array(z.string()).optional() },
  renamed: { files: 'absolute_file_paths' },
  mode: { kind: 'externalCli' },
});
