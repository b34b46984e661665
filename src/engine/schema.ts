import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { type FieldError, inputError } from '../domain/error.ts';
import { isRecord, type JsonObject } from '../domain/json.ts';
import type { ToolListing } from '../domain/request.ts';
import type { ToolDefinition } from './define.ts';

type Property = Record<string, unknown>;

/** A tool's schemas, made once. */
export interface ToolSchema {
  listing: ToolListing;
  /** By field name, hidden ones too: what its JSON schema says. */
  readonly properties: Readonly<Record<string, Property>>;
  parser: z.ZodType<Record<string, unknown>>;
}

export interface ParsedArguments {
  args: Record<string, unknown>;
  warnings: string[];
}

export function schemaOf(tool: ToolDefinition): ToolSchema {
  const advertised = jsonSchema(z.object(tool.fields));
  let properties: ToolSchema['properties'] | undefined;
  return {
    listing: {
      name: tool.name,
      title: tool.title,
      description: tool.description,
      inputSchema: { ...advertised, type: 'object' },
      annotations: {
        readOnlyHint: !tool.effects.writes,
        destructiveHint: tool.effects.destroys,
        idempotentHint: tool.effects.idempotent,
        openWorldHint: tool.effects.network,
      },
    },
    // Of use for calls alone, and half of the work: it is left out of the start.
    get properties() {
      properties ??= { ...propertiesOf(jsonSchema(z.object(tool.accepts ?? {}))), ...propertiesOf(advertised) };
      return properties;
    },
    parser: z.object({ ...tool.accepts, ...tool.fields }),
  };
}

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
    if (key === 'minLength' || (key === 'additionalProperties' && isRecord(inner))) return [];
    return [[key, isRecord(inner) ? slim(inner) : inner]];
  });
  return Object.fromEntries(entries);
}

function propertiesOf(schema: Record<string, unknown>): Record<string, Property> {
  const properties: Record<string, Property> = {};
  const found = schema.properties;
  if (!isRecord(found)) return properties;
  for (const [name, property] of Object.entries(found)) if (isRecord(property)) properties[name] = property;
  return properties;
}

/**
 * A caller's arguments as the tool wants them. Forgiving where hosts add and models slip (nulls, empty strings, lists and
 * numbers as text, a lone string for a list), strict where a slip would change the meaning (a misspelt name).
 */
export function parseArguments(
  tool: ToolDefinition,
  schema: ToolSchema,
  raw: Record<string, unknown>,
): ParsedArguments {
  const warnings: string[] = [];
  const input: Record<string, unknown> = {};
  for (const [given, value] of Object.entries(raw)) {
    if (value === null || value === undefined || value === '') continue;
    const name = tool.renamed?.[given] ?? given;
    const property = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (!property) {
      const near = nearest(given, Object.keys(schema.properties));
      if (near !== undefined) throw misspelt(tool.name, given, near);
      warnings.push(`"${given.slice(0, 60)}" is no field of ${tool.name}; it was ignored.`);
    } else if (!(name in input) || name === given) {
      input[name] = coerce(value, property);
    }
  }
  const result = schema.parser.safeParse(input);
  if (!result.success) throw invalid(tool.name, result.error, input, schema);
  return { args: result.data, warnings };
}

function misspelt(tool: string, given: string, near: string): Error {
  return inputError(`${tool} has no field "${given}". Did you mean "${near}"?`, {
    next: `Send the same call with "${near}" instead of "${given}".`,
    validationErrors: [{ field: given, error: 'unknown field', allowed: [near] }],
  });
}

/** The three of `names` that are most like a name. */
export function nearestNames(name: string, names: readonly string[]): string[] {
  return names.toSorted((a, b) => distance(name, a) - distance(name, b)).slice(0, 3);
}

/** The field that a name was probably meant to be: two slips at the most, one in a short name. */
function nearest(given: string, names: readonly string[]): string | undefined {
  const limit = given.length <= 5 ? 1 : 2;
  const flat = given.toLowerCase().replaceAll('-', '_');
  return names.find(name => name === flat) ?? names.find(name => distance(flat, name) <= limit);
}

function coerce(value: unknown, property: Property): unknown {
  switch (property.type) {
    case 'array':
      if (Array.isArray(value)) return value;
      if (typeof value !== 'string') return [value];
      return listFrom(value);
    case 'integer':
    case 'number':
      return typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;
    case 'boolean':
      if (value === 'true') return true;
      return value === 'false' ? false : value;
    case 'string':
      return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
    default:
      return value;
  }
}

function listFrom(text: string): unknown {
  if (!text.trimStart().startsWith('[')) return [text];
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : [text];
  } catch {
    // Not JSON after all: a name that happens to begin with a bracket.
    return [text];
  }
}

function invalid(tool: string, error: z.ZodError, input: Record<string, unknown>, schema: ToolSchema): Error {
  const fields = error.issues.map((issue): FieldError => {
    const field = issue.path.join('.');
    const allowed = allowedOf(schema.properties[String(issue.path[0])]);
    const missing = issue.path.length === 1 && !(field in input);
    return { field, error: missing ? 'missing' : issue.message, ...(allowed && { allowed }) };
  });
  const allMissing = fields.every(field => field.error === 'missing');
  const told = fields.map(
    ({ field, error: what, allowed }) => `${field}: ${what}${allowed ? ` (allowed: ${allowed.join(', ')})` : ''}`,
  );
  return inputError(`${tool} can't be called like this: ${told.join('; ')}.`, {
    code: allMissing ? 'MISSING_PARAMETER' : 'INVALID_INPUT_FORMAT',
    next: `Send the call again with ${fields.map(field => `"${field.field}"`).join(', ')} ${allMissing ? 'added' : 'put right'}.`,
    validationErrors: fields,
  });
}

function allowedOf(property: Property | undefined): string[] | undefined {
  return Array.isArray(property?.enum) ? property.enum.map(String) : undefined;
}
