import { z } from 'zod';
import { defineTool } from '../engine/define.ts';
import { continuationId } from '../engine/fields.ts';

export const clink = defineTool({
  name: 'clink',
  title: 'CLI link',
  description:
    'Have another agent with a command line (Gemini CLI, Codex CLI, Claude Code, OpenCode…) work on a request in this project; it only reads.',
  toolset: 'agent',
  tier: 'user',
  effects: { writes: true, destroys: false, network: true, idempotent: false },
  fields: {
    prompt: z.string().min(1).describe('The request'),
    cli_name: z.string().describe('gemini, codex, claude, agy, opencode or a configured one').optional(),
    role: z.string().describe('default, planner, codereviewer or a configured one').optional(),
    absolute_file_paths: z.array(z.string()).describe('Named to it, not included').optional(),
    allow_writes: z.boolean().describe('It may edit files, where the operator allows it').optional(),
    continuation_id: continuationId,
  },
  writesBy: ['allow_writes'],
  accepts: { images: z.array(z.string()).optional() },
  renamed: { files: 'absolute_file_paths' },
  shape: { kind: 'bridge' },
});
