import { z } from 'zod';
import { workflowFields } from '../../calls/fields.ts';
import { defineTool, type ToolDefinition } from '../../calls/tool.ts';

/** All tools that work in steps, as one: what they have in common is said once. None where there are no such tools. */
export function workflowTool(tools: readonly ToolDefinition[]): ToolDefinition[] {
  const [first, ...others] = tools.filter(({ shape }) => shape.kind === 'workflow').map(({ name }) => name);
  if (first === undefined) return [];
  // Taken all the same: the call goes on to the tool that knows them.
  const { files_checked: _checked, issues_found: _issues, use_assistant_model: _expert, ...fields } = workflowFields;
  const definition = defineTool({
    name: 'workflow',
    title: 'Work in steps, with an expert',
    description: 'Investigate, review, debug or plan in steps; an expert model judges the last one.',
    toolset: 'core',
    tier: 'user',
    effects: { writes: false, destroys: false, network: true, idempotent: false },
    fields: { kind: z.enum([first, ...others]), ...fields },
    shape: { kind: 'dispatch', by: 'kind', to: [first, ...others] },
  });
  return [definition];
}
