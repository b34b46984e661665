/** What the offline model says it was given: see src/providers/shared/offline.ts. */
export interface Account {
  vendor: string;
  model: string;
  messages: {
    role: string;
    section: string;
    chars: number;
    tokens: number;
    sha256: string;
    files: { path: string; form: string; lines?: number }[];
  }[];
  totals: { messages: number; chars: number; tokens: number; files: number };
}

export function accountIn(text: string): Account | undefined {
  const json = /```json\n([\s\S]*?)\n```/.exec(text)?.[1];
  if (json === undefined) return undefined;
  const account: Account = JSON.parse(json);
  return account;
}

/** Messages that open both prompts, equal by hash. The tail, which is never stored, does not count. */
export function sharedPrefix(
  before: Account | undefined,
  now: Account,
): { messages: number; chars: number; of: number; share: number } {
  const stable = (account: Account) => account.messages.filter(message => message.section !== 'tail');
  const [old, fresh] = [before ? stable(before) : [], stable(now)];
  let messages = 0;
  while (messages < old.length && old[messages]?.sha256 === fresh[messages]?.sha256) messages++;
  const chars = fresh.slice(0, messages).reduce((sum, message) => sum + message.chars, 0);
  const of = old.reduce((sum, message) => sum + message.chars, 0);
  return { messages, chars, of, share: of === 0 ? 0 : chars / of };
}

/** Tokens by part of the prompt. */
export function tokensByPart(account: Account): Record<'preamble' | 'history' | 'question' | 'tail', number> {
  const parts = { preamble: 0, history: 0, question: 0, tail: 0 };
  const question = account.messages.findLastIndex(message => message.section !== 'tail');
  for (const [index, { section, tokens }] of account.messages.entries()) {
    if (section === 'preamble') parts.preamble += tokens;
    else if (section === 'tail') parts.tail += tokens;
    else if (index === question) parts.question += tokens;
    else parts.history += tokens;
  }
  return parts;
}
