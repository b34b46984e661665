import { checkedBaseUrl } from '../../models/extras/endpoint.ts';
import { kimiCode } from '../../models/extras/kimi/kimi-codes.ts';
import type { ProviderSettings } from '../../models/provider.ts';
import type { VendorDoor } from '../shared/http.ts';

/** Moonshot itself; in China the same stands at api.moonshot.cn. */
const kimiBaseUrl = 'https://api.moonshot.ai/v1';

/** Where Moonshot is asked for files, caches and balances: where it is asked for answers. */
export function kimiDoor({ apiKey = '', baseUrl, trace }: ProviderSettings, now: () => number): VendorDoor {
  return {
    provider: 'moonshot',
    baseUrl: checkedBaseUrl(baseUrl ?? kimiBaseUrl, 'MOONSHOT_BASE_URL'),
    headers: { authorization: `Bearer ${apiKey}`, ...(trace === 'true' && { 'msh-trace-mode': 'on' }) },
    keyName: 'MOONSHOT_API_KEY',
    now,
    codeOf: kimiCode,
  };
}
