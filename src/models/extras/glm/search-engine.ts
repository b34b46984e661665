import type { ProviderSettings } from '../../provider.ts';

/** The engine that is searched with: as set, else what the vendor at this address has. */
export function searchEngineOf({ searchEngine }: ProviderSettings, baseUrl: string): string {
  if (searchEngine !== undefined) return searchEngine;
  return URL.parse(baseUrl)?.hostname.endsWith('bigmodel.cn') ? 'search_pro' : 'search-prime';
}

const mostHits = 50;

/** How many hits the engine is asked for: Sogou knows tens alone, and refuses what lies between. */
export function hitsToAsk(engine: string, wanted: number): number {
  const count = Math.max(1, Math.min(mostHits, wanted));
  return engine === 'search_pro_sogou' ? Math.ceil(count / 10) * 10 : count;
}
