import { type ToolDefinition, workflowOf } from '../calls/tool.ts';
import { exposurePolicy } from '../config/derived-settings.ts';
import type { Permissions, ToolListing } from '../core/tool-host.ts';
import { narrowExposure } from '../engine/exposure.ts';
import { instructionsFor } from '../engine/offer.ts';
import { createPrompts } from '../engine/prompts.ts';
import { createToolTable, type KnownListings } from '../engine/tool-table.ts';
import { tools } from '../tools/index.gen.ts';
import { offered } from '../tools/offered.gen.ts';
import type { AppConfig } from './settings.ts';

export interface ToolExposureParts {
  /** Ids of the providers that can be asked. */
  configured: readonly string[];
  /** From outside the package; they come after those of the product. */
  extraTools?: readonly ToolDefinition[] | undefined;
  /** Offered beside those of the toolsets, by name. */
  besides?: readonly string[] | undefined;
}

/** Everybody who may use all of it. */
export const unlimited: Permissions = { readOnly: false };

/** To make them from fields is half of what listing the tools takes, so that it was done before. */
const known: KnownListings = new Map(
  tools.flatMap((tool): [ToolDefinition, ToolListing][] => {
    const found = offered.find(({ name }) => name === tool.name);
    return found ? [[tool, found.listing]] : [];
  }),
);

/** Settings → what callers with the same permissions may ask for, as they are told of it. Nothing of it is running yet. */
export function composeExposure(
  values: AppConfig['values']['app'],
  { configured, extraTools = [], besides }: ToolExposureParts,
  permissions: Permissions = unlimited,
) {
  const exposed = narrowExposure(
    [...tools, ...extraTools],
    { ...exposurePolicy(values), configured, besides },
    permissions,
  );
  return {
    exposed,
    table: createToolTable(exposed, known),
    prompts: createPrompts(exposed),
    instructions: instructionsFor(exposed.tools.filter(workflowOf).map(({ name }) => name)),
  };
}
