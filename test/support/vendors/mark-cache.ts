import { createHash } from 'node:crypto';
import { claudeModel } from './claude-models.ts';
import { partOfBlock } from './read-messages.ts';
import { recordOf, recordsOf, stableJson, stringOf } from './wire-values.ts';

export interface MarkedUsage {
  read: number;
  /** Written for five minutes. */
  short: number;
  /** Written for an hour. */
  long: number;
}

export interface MarkCache {
  /** What a request reads from the cache and writes to it by its `cache_control` marks. */
  use(body: Record<string, unknown>): MarkedUsage;
}

interface Block {
  /** Everything up to here, as one hash. */
  prefix: string;
  /** Tokens up to and with this block. */
  tokens: number;
  mark?: 'short' | 'long';
}

/** Blocks before a mark among which an older, shorter entry is looked for. */
const lookBack = 20;

/** Anthropic's cache: exact prefixes up to a mark, from the model's least size on. Nothing is forgotten. */
export function createMarkCache(tokenize: (text: string) => readonly number[]): MarkCache {
  const written = new Set<string>();
  return {
    use(body) {
      const blocks = blocksOf(body, tokenize);
      const least = claudeModel(stringOf(body.model)).cacheFrom;
      const marked = [...blocks.keys()].filter(at => blocks[at]?.mark && (blocks[at]?.tokens ?? 0) >= least);
      const usage = { read: 0, short: 0, long: 0 };
      for (const at of marked) {
        const hit = blocks.slice(Math.max(0, at - lookBack), at + 1).findLast(block => written.has(block.prefix));
        usage.read = Math.max(usage.read, hit?.tokens ?? 0);
      }
      let upTo = usage.read;
      for (const at of marked) {
        const block = blocks[at];
        if (!block?.mark) continue;
        usage[block.mark] += Math.max(0, block.tokens - upTo);
        upTo = Math.max(upTo, block.tokens);
        written.add(block.prefix);
      }
      return usage;
    },
  };
}

function blocksOf(body: Record<string, unknown>, tokenize: (text: string) => readonly number[]): Block[] {
  const { model, thinking, tool_choice } = body;
  const blocks: Block[] = [];
  let prefix = hash('', stableJson(model));
  let tokens = 0;

  const add = (label: string, text: string, opaque: string | undefined, mark: unknown): void => {
    prefix = hash(prefix, `${label}\n${opaque ?? ''}\n${text}`);
    tokens += opaque === undefined ? tokenize(text).length : 0;
    const { type, ttl } = recordOf(mark);
    blocks.push({ prefix, tokens, ...(type === 'ephemeral' && { mark: keptFor(ttl) }) });
  };

  for (const { cache_control, ...tool } of recordsOf(body.tools))
    add('tools', stableJson(tool), undefined, cache_control);
  for (const block of asBlocks(body.system)) addBlock(add, 'system', block);
  // How it thinks changes what is kept of the messages, not of what stands before them.
  prefix = hash(prefix, stableJson({ thinking, tool_choice }));
  for (const message of recordsOf(body.messages))
    for (const block of asBlocks(message.content)) addBlock(add, stringOf(message.role), block);
  const last = blocks.at(-1);
  if (last && body.cache_control !== undefined) last.mark = keptFor(recordOf(body.cache_control).ttl);
  return blocks;
}

function keptFor(ttl: unknown): 'short' | 'long' {
  return ttl === '1h' ? 'long' : 'short';
}

function addBlock(
  add: (label: string, text: string, opaque: string | undefined, mark: unknown) => void,
  label: string,
  block: Record<string, unknown>,
): void {
  const { text, opaque } = partOfBlock(block);
  add(label, text, opaque, block.cache_control);
}

function asBlocks(content: unknown): Record<string, unknown>[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : recordsOf(content);
}

function hash(before: string, text: string): string {
  return createHash('sha256').update(before).update('\0').update(text).digest('hex');
}
