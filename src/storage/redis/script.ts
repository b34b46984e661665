import { hash } from 'node:crypto';

/** A change that the server makes as one step. Nothing of it is visible before its end, and all of it is written or nothing. */
export interface RedisScript {
  text: string;
  sha1: string;
  kind: ScriptKind;
}

/** `frees` changes something on a primary that has no room, too. */
export type ScriptKind = 'reads' | 'frees' | 'writes';

const scriptOf =
  (kind: ScriptKind) =>
  (text: string): RedisScript => ({ text, kind, sha1: hash('sha1', text) });

export const reads = scriptOf('reads');
export const frees = scriptOf('frees');
export const writes = scriptOf('writes');

/** Lets a key live at least as long as that; never shorter, because somebody else may need it for longer. */
export const raiseLife = `
local function raise(key, ms)
  local left = redis.call('PTTL', key)
  if left == -1 or (left >= 0 and left < tonumber(ms)) then redis.call('PEXPIRE', key, ms) end
end
`;

/** The texts in a reply; what is not there is undefined. */
export const textsOf = (reply: unknown): (string | undefined)[] =>
  Array.isArray(reply) ? reply.map(each => (each === null || each === undefined ? undefined : String(each))) : [];

/** The texts of a reply in which each has to be there. */
export const allTextsOf = (reply: unknown): string[] => textsOf(reply).filter(text => text !== undefined);

/** A reply with names and values in turn. */
export function pairsOf(reply: unknown): [string, string][] {
  const texts = textsOf(reply);
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < texts.length; at += 2) pairs.push([texts[at] ?? '', texts[at + 1] ?? '']);
  return pairs;
}

/** The parts of a reply that is a list of lists. */
export const partsOf = (reply: unknown): unknown[] => (Array.isArray(reply) ? reply : []);
