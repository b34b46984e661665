import { schemaOf } from '../../src/calls/argument-schema.ts';
import type { ToolDefinition } from '../../src/calls/tool.ts';
import { isRecord } from '../../src/core/json.ts';
import { cell, code, table } from './markdown.ts';

type Property = Readonly<Record<string, unknown>>;

function typeOf(property: Property): string {
  if (Array.isArray(property.enum)) return property.enum.map(word => code(String(word))).join(', ');
  if (property.type === 'array' && isRecord(property.items)) return `list of ${typeOf(property.items)}`;
  return typeof property.type === 'string' ? property.type : 'any JSON';
}

function effectsOf({ effects }: ToolDefinition): string {
  const told = [
    effects.writes ? 'writes' : 'reads only',
    effects.destroys && 'may remove what was there',
    effects.network && 'talks to a model or the network',
    effects.idempotent && 'safe to repeat',
  ];
  return told.filter(Boolean).join(', ');
}

function section(tool: ToolDefinition): string {
  const { listing, properties } = schemaOf(tool);
  const { required, properties: advertised } = listing.inputSchema;
  const rows = Object.entries(properties)
    .map(([name, property]) => ({ name, property, shown: isRecord(advertised) && name in advertised }))
    .sort((a, b) => Number(b.shown) - Number(a.shown))
    .map(({ name, property, shown }) => [
      code(name),
      typeOf(property),
      Array.isArray(required) && required.includes(name) ? 'required' : shown ? 'optional' : 'accepted, not advertised',
      cell(typeof property.description === 'string' ? property.description : ''),
    ]);
  const older = Object.entries(tool.renamed ?? {}).map(([old, name]) => `${code(old)} → ${code(name)}`);
  const parts = [
    `## ${tool.name}`,
    `**${tool.title}.** ${cell(tool.description)}`,
    `Toolset ${code(tool.toolset)}; ${effectsOf(tool)}.`,
    rows.length > 0 ? table(['field', 'type', '', 'meaning'], rows) : 'It takes no fields.',
    ...(older.length > 0 ? [`Older names that are accepted: ${older.join(', ')}.`] : []),
  ];
  return parts.join('\n\n');
}

/** The reference of all tools that callers see, in Markdown. */
export function describeTools(tools: readonly ToolDefinition[]): string {
  const listed = tools.filter(tool => tool.tier !== 'internal');
  return ['# Tools', ...listed.map(section)].join('\n\n');
}
