import { type JsonObject, mapTexts } from './json.ts';

/** A piece of a message; of an image, `data` is the bytes of its file. */
export type Part =
  | { type: 'text'; text: string }
  /** `data` is the file's bytes. */
  | { type: 'image'; mediaType: string; data: Uint8Array };

/**
 * One message of a prompt. `preamble` and `turn` messages are the stable part that grows only at its end; the one `tail`
 * comes last, is never stored, and is not part of the canonical form.
 */
export interface Message {
  /** Who speaks; `system` gives instructions. */
  role: 'system' | 'user' | 'assistant';
  /** Its place in the prompt. */
  section: 'preamble' | 'turn' | 'tail';
  /** Texts and images, in their order. */
  parts: Part[];
  /** Ends a stretch that the vendor should cache, where the vendor wants to be told. */
  cacheMark?: boolean;
  /** The text of a document: material, though some vendors want it as a system message. */
  document?: boolean;
  /** What a model said that may call tools, in its order; takes the place of `parts`, which is empty. */
  said?: readonly SaidPart[];
  /** What came of the calls in the message before; a message of the user's whose `parts` are empty. */
  results?: readonly ToolResult[];
}

/** What only the vendor that said it understands, by the id of its provider: signatures, sealed thoughts. */
export type VendorFacts = Readonly<Record<string, JsonObject>>;

/** A piece of what a model said. */
export type SaidPart = { vendor?: VendorFacts } & (
  | { type: 'text'; text: string }
  | { type: 'thought'; text: string }
  | ({ type: 'call' } & ToolCall)
);

/** A call of a tool, as a model asks for it. */
export interface ToolCall {
  /** Unique within its message. */
  id: string;
  name: string;
  args: JsonObject;
  /** What the model wrote where it was no JSON object; `args` is empty then. */
  broken?: string;
}

/** What came of a call, as its model reads it; `failed` is true where it failed. */
export interface ToolResult {
  /** Of the call. */
  id: string;
  name: string;
  text: string;
  failed?: boolean;
}

/** The first line of every tail. Whoever compares prompts cuts there. */
export const tailHeading = '=== WHAT TO DO NOW ===';

/** All of a message that is text, as it counts; calls and results too. */
export function textOf(message: Message): string {
  const text = message.parts.map(part => (part.type === 'text' ? part.text : '')).join('');
  const said = message.said?.map(part => (part.type === 'call' ? part.name + JSON.stringify(part.args) : part.text));
  return [text, ...(said ?? []), ...(message.results?.map(result => result.text) ?? [])].join('');
}

type Told = { text?: string; vendor?: VendorFacts };

function unsigned<Item extends Told>(item: Item): Item {
  const empty = Object.entries(item.vendor ?? {}).filter(([, facts]) => Object.keys(facts).length === 0);
  return item.vendor ? { ...item, vendor: Object.fromEntries(empty) } : item;
}

/** With another text; what its vendor signed was the one that it had. */
const withText = <Item extends Told>(item: Item, text: string): Item =>
  text === item.text ? item : { ...unsigned(item), text };

/** What a model said, with other texts; calls keep their arguments. Some vendors repeat thoughts in the clear beside later pieces. */
export async function mapSaid(said: readonly SaidPart[], text: (text: string) => Promise<string>): Promise<SaidPart[]> {
  const mapped = said.map(async part => (part.type === 'call' ? part : withText(part, await text(part.text))));
  const repeats = async ({ vendor = {} }: SaidPart) =>
    JSON.stringify(await mapTexts({ ...vendor }, text)) !== JSON.stringify(vendor);
  const parts = await Promise.all(mapped);
  if (!parts.some((part, at) => part.type === 'thought' && part !== said[at])) return parts;
  return Promise.all(parts.map(async part => ((await repeats(part)) ? unsigned(part) : part)));
}

/** The message with another text in the place of each of its own; names and ids stay. */
export async function mapMessage(message: Message, text: (text: string) => Promise<string>): Promise<Message> {
  const { parts, said, results } = message;
  const mapped = async <Item extends { type: string; text?: string }>(item: Item): Promise<Item> =>
    item.text === undefined ? item : withText(item, await text(item.text));
  const mappedCall = async (part: SaidPart): Promise<SaidPart> =>
    part.type === 'call' ? { ...part, args: await mapTexts(part.args, text) } : part;
  return {
    ...message,
    parts: await Promise.all(parts.map(part => mapped(part))),
    ...(said && { said: await Promise.all((await mapSaid(said, text)).map(mappedCall)) }),
    ...(results && { results: await Promise.all(results.map(async each => withText(each, await text(each.text)))) }),
  };
}
