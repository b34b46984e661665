import { isRecord } from '../../../src/core/json.ts';
import { anthropicRefusal } from './anthropic-refusal.ts';
import type { Refusal } from './refusal.ts';
import { recordOf, stringOf } from './wire-values.ts';

const blockTypes: Record<string, readonly string[]> = {
  user: ['text', 'image', 'document', 'search_result', 'tool_result', 'container_upload'],
  assistant: ['text', 'thinking', 'redacted_thinking', 'tool_use', 'server_tool_use', 'web_search_tool_result'],
  system: ['text'],
};
const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** The top-level system text: a string or text blocks, none of them empty. */
export function checkSystem(system: unknown): Refusal | undefined {
  if (!Array.isArray(system)) return undefined;
  for (const [index, block] of system.entries()) {
    if (!isRecord(block) || block.type !== 'text' || typeof block.text !== 'string')
      return anthropicRefusal(`system.${index}: Input should be a text block`);
    const refused = checkText(block.text, 'system', block.cache_control !== undefined, `system.${index}`);
    if (refused) return refused;
  }
  return undefined;
}

/** The content of the message at `index`. */
export function checkContent(message: Record<string, unknown>, index: number, last: boolean): Refusal | undefined {
  const role = stringOf(message.role);
  const { content } = message;
  const stray = Object.keys(message).find(key => !['role', 'content', 'clear_at', 'output_config'].includes(key));
  if (stray) return anthropicRefusal(`messages.${index}.${stray}: Extra inputs are not permitted`);
  if (typeof content === 'string') {
    if (content === '') return anthropicRefusal(`messages.${index}: ${role} messages must have non-empty content`);
    return checkText(content, 'messages', false, `messages.${index}`) ?? checkEnding(content, role, last);
  }
  if (!Array.isArray(content)) return anthropicRefusal(`messages.${index}.content: Input should be a valid list`);
  if (content.length === 0) return anthropicRefusal(`messages.${index}: ${role} messages must have non-empty content`);
  for (const [at, block] of content.entries()) {
    const refused = checkBlock(block, role, `messages.${index}.content.${at}`);
    if (refused) return refused;
  }
  return checkEnding(stringOf(recordOf(content.at(-1)).text), role, last);
}

function checkEnding(text: string, role: string, last: boolean): Refusal | undefined {
  if (!last || role !== 'assistant' || text === text.trimEnd()) return undefined;
  return anthropicRefusal('messages: final assistant content cannot end with trailing whitespace');
}

function checkBlock(block: unknown, role: string, at: string): Refusal | undefined {
  if (!isRecord(block)) return anthropicRefusal(`${at}: Input should be a valid dictionary`);
  const type = stringOf(block.type);
  const allowed = blockTypes[role] ?? [];
  if (!allowed.includes(type))
    return anthropicRefusal(
      `${at}: Input tag '${type}' does not match any of the expected tags: ${allowed.join(', ')}`,
    );
  if (type === 'text') {
    if (typeof block.text !== 'string') return anthropicRefusal(`${at}.text.text: Field required`);
    return checkText(block.text, 'messages', block.cache_control !== undefined, at);
  }
  if (type.endsWith('thinking') && block.cache_control !== undefined)
    return anthropicRefusal(`${at}.${type}.cache_control: Extra inputs are not permitted`);
  return type === 'image' ? checkImage(recordOf(block.source), at) : undefined;
}

function checkText(text: string, where: string, marked: boolean, at: string): Refusal | undefined {
  if (text === '' && marked) return anthropicRefusal(`${at}.text: cache_control cannot be set for empty text blocks`);
  if (text === '') return anthropicRefusal(`${where}: text content blocks must be non-empty`);
  if (text.trim() === '') return anthropicRefusal(`${where}: text content blocks must contain non-whitespace text`);
  return undefined;
}

function checkImage(source: Record<string, unknown>, at: string): Refusal | undefined {
  if (source.type === 'url' || source.type === 'file') return undefined;
  if (source.type !== 'base64')
    return anthropicRefusal(`${at}.image.source: Input tag should be 'base64', 'url' or 'file'`);
  if (!imageTypes.includes(stringOf(source.media_type)))
    return anthropicRefusal(`${at}.image.source.base64.media_type: Input should be ${imageTypes.join(', ')}`);
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(stringOf(source.data)))
    return anthropicRefusal(`${at}.image.source.base64: invalid base64 data`);
  return undefined;
}
