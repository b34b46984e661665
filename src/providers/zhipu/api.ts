import { checkedBaseUrl } from '../../models/extras/endpoint.ts';
import { glmCode } from '../../models/extras/glm/glm-codes.ts';
import type { ProviderSettings } from '../../models/provider.ts';
import type { VendorDoor } from '../shared/http.ts';

/** Z.ai; in China the same stands at open.bigmodel.cn. */
const glmBaseUrl = 'https://api.z.ai/api/paas/v4';

/** Where GLM is asked for searches, files and embeddings: where it is asked for answers. */
export function glmDoor({ apiKey = '', baseUrl }: ProviderSettings, now: () => number): VendorDoor {
  return {
    provider: 'zhipu',
    baseUrl: checkedBaseUrl(baseUrl ?? glmBaseUrl, 'ZHIPU_BASE_URL'),
    headers: { authorization: `Bearer ${apiKey}` },
    keyName: 'ZHIPUAI_API_KEY',
    now,
    codeOf: glmCode,
  };
}
