import type { ToolDefinition } from '../calls/tool.ts';
import type { ProviderDefinition } from '../models/provider.ts';
import type { StoreDefinition } from '../storage/store.ts';

/** What comes from outside the package and stands beside what is in it. */
export interface Extensions {
  tools?: readonly ToolDefinition[];
  providers?: readonly ProviderDefinition[];
  stores?: readonly StoreDefinition[];
}
