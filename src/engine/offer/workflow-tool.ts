import { z } from 'zod';
import { defineTool, type ToolDefinition } from '../define.ts';
import { workflowFields } from '../fields.ts';

/** All tools that work in steps, as one: what they have in common is said once. None where there are no such tools. */
export function workflowTool(tools: readonly ToolDefinition[]): ToolDefinition[] {
  const [first, ...others] = tools.filter(({ shape }) => shape.kind === 'workflow').map(({ name }) => name);
  if (first === undefined) return [];
  const definition = defineTool({
    name: 'workflow',
    title: 'Work in steps, with an expert',
    description: 'Investigate, review, debug or plan in steps; an expert model judges the last one.',
    toolset: 'core',
    tier: 'user',
    effects: { writes: false, destroys: false, network: true, idempotent: false },
    fields: { kind: z.enum([first, ...others]), ...workflowFields },
    shape: { kind: 'dispatch', by: 'kind', to: [first, ...others] },
  });
  return [definition];
}
