import { isRecord, type JsonObject } from '../../core/json.ts';

/** What a built-in model was sent, as its answer tells. */
export interface Account {
  tokens: number;
  messages: { sha256: string; section: string; chars: number }[];
  /** Each with how it was sent: `full`, `diff`, `unchanged`. */
  files: string[];
}

/** The account in a reply: in a text, or as an expert's findings. */
export function accountIn({ content, expert_analysis: expert }: JsonObject): Account | undefined {
  const said = isRecord(expert) ? (expert.raw_analysis ?? expert) : content;
  const told = typeof said === 'string' ? jsonIn(said) : said;
  if (!isRecord(told) || !Array.isArray(told.messages) || !isRecord(told.totals)) return undefined;
  const messages = told.messages.filter(isRecord);
  return {
    tokens: Number(told.totals.tokens),
    messages: messages.map(({ sha256, section, chars }) => ({
      sha256: String(sha256),
      section: String(section),
      chars: Number(chars),
    })),
    files: messages.flatMap(({ files }) => (Array.isArray(files) ? files.filter(isRecord) : []).map(shown)),
  };
}

function jsonIn(text: string): unknown {
  const json = /```json\n([\s\S]*?)\n```/.exec(text)?.[1];
  return json === undefined ? undefined : JSON.parse(json);
}

function shown({ path, form }: Record<string, unknown>): string {
  return `${String(path).split('/').at(-1)} (${form})`;
}

/** How much of the prompt before opens this one, unchanged: what a vendor need not read again. The task at the end is never kept. */
export function keptOf(before: Account, now: Account): number {
  const [old, fresh] = [before, now].map(({ messages }) => messages.filter(({ section }) => section !== 'tail'));
  const changed = old?.findIndex(({ sha256 }, at) => fresh?.[at]?.sha256 !== sha256) ?? -1;
  const kept = changed < 0 ? old : old?.slice(0, changed);
  const chars = (messages: Account['messages'] = []) => messages.reduce((sum, each) => sum + each.chars, 0);
  return chars(kept) / Math.max(1, chars(old));
}
