import { createHash } from 'node:crypto';
import type { ToolListing } from '../../core/tool-host.ts';

/** Raised by hand when a tool changes: major when callers must change, minor when they may. */
export const release = '1.10.0';

/** Version of the tools as callers see them: `1.1.0+` and eight characters of a hash over their schemas. */
export function catalogueVersion(tools: readonly ToolListing[]): string {
  const schemas = tools.map(({ name, inputSchema }) => [name, inputSchema]);
  return `${release}+${createHash('sha256').update(JSON.stringify(schemas)).digest('hex').slice(0, 8)}`;
}
