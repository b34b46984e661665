import type { ProviderSettings } from '../../provider.ts';

/** The engine that is searched with: as set, else what the vendor at this address has. */
export function searchEngineOf({ searchEngine }: ProviderSettings, baseUrl: string): string {
  if (searchEngine !== undefined) return searchEngine;
  return URL.parse(baseUrl)?.hostname.endsWith('bigmodel.cn') ? 'search_pro' : 'search-prime';
}
