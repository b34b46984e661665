import { isRecord } from '../../../src/core/json.ts';
import { o200kTokens } from './o200k-tokens.ts';
import type { BesideAnswer, BesideRequest } from './vendor-kind.ts';
import { recordsOf, stringOf } from './wire-values.ts';

/** Balance and the counter of tokens. */
export interface MoonshotServices {
  balance: { available_balance: number; voucher_balance: number; cash_balance: number };
  asked: string[];
  beside(request: BesideRequest): BesideAnswer | undefined;
}

export function createMoonshotServices(refuse: (status: number, message: string) => BesideAnswer): MoonshotServices {
  const self: MoonshotServices = {
    balance: { available_balance: 49.58, voucher_balance: 46.58, cash_balance: 3 },
    asked: [],
    beside({ method, path, bytes }) {
      self.asked.push(`${method} ${path}`);
      if (method === 'GET' && path === '/users/me/balance')
        return { status: 200, body: { code: 0, data: self.balance, scode: '0x0', status: true } };
      if (method === 'POST' && path === '/tokenizers/estimate-token-count') return counted(bytes, refuse);
      return undefined;
    },
  };
  return self;
}

function parsed(bytes: Buffer): Record<string, unknown> {
  const body: unknown = JSON.parse(bytes.toString('utf8'));
  return isRecord(body) ? body : {};
}

function counted(bytes: Buffer, refuse: (status: number, message: string) => BesideAnswer): BesideAnswer {
  const { model, messages } = parsed(bytes);
  if (!stringOf(model)) return refuse(400, 'Invalid request: model is required');
  if (recordsOf(messages).length === 0) return refuse(400, 'Invalid request: messages is required');
  if (recordsOf(messages).some(({ role }) => !['system', 'user', 'assistant'].includes(stringOf(role))))
    return refuse(400, 'Invalid request: role is one of system, user, assistant');
  const textOf = ({ content }: Record<string, unknown>) =>
    typeof content === 'string'
      ? content
      : recordsOf(content)
          .map(({ text }) => stringOf(text))
          .join('');
  const total = recordsOf(messages).reduce((sum, message) => sum + o200kTokens(textOf(message)).length, 0);
  return { status: 200, body: { code: 0, data: { total_tokens: total }, scode: '0x0', status: true } };
}
