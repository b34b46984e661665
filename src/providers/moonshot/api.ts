import { isRecord } from '../../core/json.ts';
import { type AccountBalance, checkedBaseUrl, type ProviderSettings } from '../../models/provider.ts';
import { badUpstream } from '../../models/resilience/errors.ts';
import { type VendorEndpoint, vendorJson } from '../shared/http.ts';

const timeoutMs = 15_000;

/** US dollars at moonshot.ai, yuan at moonshot.cn. Throws an `AppError`. */
export async function moonshotBalance(endpoint: VendorEndpoint, signal: AbortSignal): Promise<AccountBalance> {
  const path = '/users/me/balance';
  const { data } = await vendorJson(endpoint, { path, what: 'its balance', timeoutMs, signal });
  if (!isRecord(data) || typeof data.available_balance !== 'number') throw badUpstream('The balance has no amount.');
  const { available_balance: available, voucher_balance: voucher, cash_balance: cash } = data;
  return { available, voucher: amount(voucher), cash: amount(cash) };
}

const amount = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** Moonshot itself; in China the same stands at api.moonshot.cn. */
const moonshotBaseUrl = 'https://api.moonshot.ai/v1';

/** Where Moonshot is asked for files and balances: where it is asked for answers. */
export function moonshotEndpoint({ apiKey = '', baseUrl, trace }: ProviderSettings, now: () => number): VendorEndpoint {
  return {
    provider: 'moonshot',
    baseUrl: checkedBaseUrl(baseUrl ?? moonshotBaseUrl, 'MOONSHOT_BASE_URL'),
    headers: { authorization: `Bearer ${apiKey}`, ...(trace === 'true' && { 'msh-trace-mode': 'on' }) },
    keyName: 'MOONSHOT_API_KEY',
    now,
  };
}
