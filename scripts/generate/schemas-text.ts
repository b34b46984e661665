import { advertisedSchema } from '../../src/calls/argument-schema.ts';
import type { ToolDefinition } from '../../src/calls/tool.ts';
import { notice } from './member-list.ts';

/** A module with what `tools/list` says of each tool's arguments, so that no start has to make it. */
export function schemasText(tools: readonly ToolDefinition[]): string {
  const rows = tools.map(tool => `  ${JSON.stringify(tool.name)}: ${JSON.stringify(advertisedSchema(tool))},`);
  return `${[
    notice,
    "import type { JsonObject } from '../core/json.ts';",
    '',
    '/** By the name of the tool. */',
    'export const schemas: Readonly<Record<string, JsonObject>> = {',
    ...rows,
    '};',
  ].join('\n')}\n`;
}
