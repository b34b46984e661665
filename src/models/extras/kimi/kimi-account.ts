import { isRecord, type JsonObject } from '../../../domain/json.ts';
import { badUpstream } from '../../errors.ts';
import { type VendorDoor, vendorJson } from '../upstream/vendor-request.ts';

/** What an account has left, in the currency of the vendor's platform (US dollars at moonshot.ai, yuan at moonshot.cn). */
export interface AccountBalance {
  available: number;
  voucher: number;
  /** Below zero when it is owed. */
  cash: number;
}

const timeoutMs = 15_000;

/** Throws an `AppError`. */
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

/** Tokens of messages as the vendor counts them for a model. Throws an `AppError`. */
export async function kimiTokens(
  door: VendorDoor,
  model: string,
  messages: readonly { role: 'system' | 'user' | 'assistant'; content: string }[],
  signal: AbortSignal,
): Promise<number> {
  const body: JsonObject = { model, messages: messages.map(message => ({ ...message })) };
  const path = '/tokenizers/estimate-token-count';
  const what = 'the number of tokens';
  const { data } = await vendorJson(door, { method: 'POST', path, body, what, timeoutMs: 30_000, signal });
  const tokens = isRecord(data) ? data.total_tokens : undefined;
  if (typeof tokens !== 'number') throw badUpstream('The count of tokens has no number.');
  return tokens;
}
