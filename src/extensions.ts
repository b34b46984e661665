import type { ToolDefinition } from './engine/define.ts';
import type { StoreDefinition } from './memory/store.ts';
import type { ProviderDefinition } from './models/provider.ts';

/** What comes from outside the package and stands beside what is in it. */
export interface Extensions {
  tools?: readonly ToolDefinition[];
  providers?: readonly ProviderDefinition[];
  stores?: readonly StoreDefinition[];
}
