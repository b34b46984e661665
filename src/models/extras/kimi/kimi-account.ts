import { isRecord } from '../../../core/json.ts';
import { type VendorDoor, vendorJson } from '../../../providers/shared/http.ts';
import type { AccountBalance } from '../../provider.ts';
import { badUpstream } from '../../resilience/errors.ts';

const timeoutMs = 15_000;

/** US dollars at moonshot.ai, yuan at moonshot.cn. Throws an `AppError`. */
export async function kimiBalance(door: VendorDoor, signal: AbortSignal): Promise<AccountBalance> {
  const path = '/users/me/balance';
  const { data } = await vendorJson(door, { method: 'GET', path, what: 'its balance', timeoutMs, signal });
  if (!isRecord(data) || typeof data.available_balance !== 'number') throw badUpstream('The balance has no amount.');
  const { available_balance: available, voucher_balance: voucher, cash_balance: cash } = data;
  return { available, voucher: amount(voucher), cash: amount(cash) };
}

function amount(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
