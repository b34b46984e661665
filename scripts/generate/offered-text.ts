import { listingOf } from '../../src/calls/argument-schema.ts';
import { type OfferedTool, type ToolDefinition, workflowOf } from '../../src/calls/tool.ts';
import { withoutWrites, withWrites } from '../../src/engine/exposure.ts';
import { notice } from './member-list.ts';

/** A module with what `tools/list` says of each tool, so that no start has to load the definitions. */
export function offeredText(tools: readonly ToolDefinition[]): string {
  return `${[
    notice,
    "import type { OfferedTool } from '../calls/tool.ts';",
    '',
    '/** In the order in which they are listed. */',
    'export const offered: readonly OfferedTool[] = [',
    ...tools.map(tool => `  ${JSON.stringify(rowOf(tool))},`),
    '];',
  ].join('\n')}\n`;
}

function rowOf(tool: ToolDefinition): OfferedTool {
  const { name, toolset, tier, needs, programs } = tool;
  const [readOnly] = withoutWrites(tool);
  const writing = withWrites(tool);
  return {
    name,
    toolset,
    tier,
    ...(needs && { needs }),
    ...(programs && { programs }),
    isWorkflow: workflowOf(tool) !== undefined,
    listing: listingOf(tool),
    ...(readOnly !== tool && { readOnly: readOnly ? listingOf(readOnly) : null }),
    ...(writing !== tool && { writing: listingOf(writing) }),
  };
}
