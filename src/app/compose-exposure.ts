import type { ToolDefinition } from '../calls/tool.ts';
import { exposurePolicy } from '../config/derived-settings.ts';
import type { JsonObject } from '../core/json.ts';
import type { HostPrompts, Permissions } from '../core/tool-host.ts';
import type { ExposedTools } from '../engine/exposure.ts';
import { narrowExposure } from '../engine/exposure.ts';
import { createPrompts } from '../engine/prompts.ts';
import { createToolTable, instructionsFor, type PrebuiltSchemas, type ToolTable } from '../engine/tool-table.ts';
import { tools } from '../tools/index.gen.ts';
import { schemas } from '../tools/schemas.gen.ts';
import type { AppConfig } from './settings.ts';

/** What callers with the same permissions may ask for, as they are told of it. */
export interface ToolExposure {
  exposed: ExposedTools;
  table: ToolTable;
  prompts: HostPrompts;
  instructions: string;
}

export interface ToolExposureParts {
  /** Ids of the providers that can be asked. */
  configured: readonly string[];
  /** From outside the package; they come after those of the product. */
  extraTools?: readonly ToolDefinition[];
  /** Offered beside those of the toolsets, by name. */
  besides?: readonly string[];
}

/** Everybody who may use all of it. */
export const unlimited: Permissions = { readOnly: false };

/** To make them from fields is half of what listing the tools takes, so that it was done before. */
const prebuiltSchemas: PrebuiltSchemas = new Map(
  tools.flatMap((tool): [ToolDefinition, JsonObject][] => {
    const schema = schemas[tool.name];
    return schema ? [[tool, schema]] : [];
  }),
);

/** Settings → what is offered. Nothing of it is running yet. */
export function composeExposure(
  values: AppConfig['values']['app'],
  { configured, extraTools = [], besides }: ToolExposureParts,
  permissions: Permissions = unlimited,
): ToolExposure {
  const exposed = narrowExposure(
    [...tools, ...extraTools],
    { ...exposurePolicy(values), configured, besides },
    permissions,
  );
  return {
    exposed,
    table: createToolTable(exposed, prebuiltSchemas),
    prompts: createPrompts(exposed),
    instructions: instructionsFor(exposed.tools),
  };
}
