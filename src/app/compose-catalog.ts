import type { ToolDefinition } from '../calls/tool.ts';
import { exposurePolicy } from '../config/derived-settings.ts';
import type { JsonObject } from '../core/json.ts';
import type { HostPrompts, Permissions } from '../core/tool-host.ts';
import type { ExposedTools } from '../engine/exposure.ts';
import { narrow } from '../engine/exposure.ts';
import { createPrompts } from '../engine/prompts.ts';
import { createToolTable, instructionsFor, type MadeSchemas, type ToolTable } from '../engine/tool-table.ts';
import { tools } from '../tools/index.gen.ts';
import { schemas } from '../tools/schemas.gen.ts';
import type { AppConfig } from './settings.ts';

/** What callers with the same permissions may ask for, as they are told of it. */
export interface WiredOffer {
  offer: ExposedTools;
  table: ToolTable;
  prompts: HostPrompts;
  instructions: string;
}

export interface OfferParts {
  /** Ids of the providers that can be asked. */
  configured: readonly string[];
  /** From outside the package; they come after those of the product. */
  extraTools?: readonly ToolDefinition[];
}

/** Everybody who may use all of it. */
export const unlimited: Permissions = { readOnly: false };

/** To make them from fields is half of what listing the tools takes, so that it was done before. */
const made: MadeSchemas = new Map(
  tools.flatMap((tool): [ToolDefinition, JsonObject][] => {
    const schema = schemas[tool.name];
    return schema ? [[tool, schema]] : [];
  }),
);

/** Settings → what is offered. Nothing of it is running yet. */
export function wireOffer(
  values: AppConfig['values']['app'],
  { configured, extraTools = [] }: OfferParts,
  permissions: Permissions = unlimited,
): WiredOffer {
  const offer = narrow([...tools, ...extraTools], { ...exposurePolicy(values), configured }, permissions);
  return {
    offer,
    table: createToolTable(offer, made),
    prompts: createPrompts(offer),
    instructions: instructionsFor(offer.tools),
  };
}
