import { z } from 'zod';
import { isRecord, type JsonObject, recordIn } from '../core/json.ts';
import type { ToolListing } from '../core/tool-host.ts';
import type { ToolDefinition } from './tool.ts';

/** What the JSON schema of a field says. */
export type Property = Record<string, unknown>;

/** A tool's schemas, made once. */
export interface ToolSchema {
  listing: ToolListing;
  /** By field name, hidden ones too: what its JSON schema says. */
  readonly properties: Readonly<Record<string, Property>>;
  readonly parser: z.ZodType<Record<string, unknown>>;
}

/** `made`: what `listingOf` comes to for this very definition, where that is known already. */
export function schemaOf(tool: ToolDefinition, made?: ToolListing): ToolSchema {
  const listing = made ?? listingOf(tool);
  return {
    listing,
    // These are of use for calls alone, and most of the work: they are left out of the start.
    get properties() {
      const value = { ...propertiesOf(jsonSchema(z.object(tool.accepts ?? {}))), ...propertiesOf(listing.inputSchema) };
      Object.defineProperty(this, 'properties', { value });
      return value;
    },
    get parser() {
      const value = z.object({ ...tool.accepts, ...tool.fields });
      Object.defineProperty(this, 'parser', { value });
      return value;
    },
  };
}

/** A tool as `tools/list` tells of it. */
export const listingOf = ({ name, title, description, fields, effects }: ToolDefinition): ToolListing => ({
  name,
  title,
  description,
  inputSchema: { ...jsonSchema(z.object(fields)), type: 'object' },
  annotations: {
    readOnlyHint: !effects.writes,
    destructiveHint: effects.destroys,
    // It says something of tools that write, and of no other.
    ...(effects.writes && { idempotentHint: effects.idempotent }),
    openWorldHint: effects.network,
  },
});

/** The JSON Schema without what costs tokens and tells a model nothing. */
function jsonSchema(schema: z.ZodType): JsonObject {
  const {
    $schema: _dialect,
    additionalProperties: _extra,
    type: _type,
    ...rest
  } = slim(z.toJSONSchema(schema, { io: 'input' }));
  return rest;
}

const noise = new Set(['propertyNames', 'default']);

function slim(value: object): JsonObject {
  const entries = Object.entries(value).flatMap(([key, inner]) => {
    if (noise.has(key) || (key === 'maximum' && inner === Number.MAX_SAFE_INTEGER)) return [];
    // That counting starts at 0 or 1 and a text is not empty goes without saying; it is checked all the same.
    if (key === 'minLength' || (key === 'minimum' && (inner === 0 || inner === 1))) return [];
    if (key === 'additionalProperties' && isRecord(inner)) return [];
    return [[key, isRecord(inner) ? slim(inner) : inner]];
  });
  return Object.fromEntries(entries);
}

const propertiesOf = ({ properties }: JsonObject): Record<string, Property> =>
  Object.fromEntries(
    Object.entries(recordIn(properties)).flatMap(([name, property]) => (isRecord(property) ? [[name, property]] : [])),
  );
