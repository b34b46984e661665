import { isRecord } from '../../../domain/json.ts';

/**
 * A chat body whose messages of several texts have one text each, for servers that take lists of parts only where an image
 * is among them.
 */
export function withJoinedTexts(body: Record<string, unknown>): Record<string, unknown> {
  if (!Array.isArray(body.messages)) return body;
  return { ...body, messages: body.messages.map(joined) };
}

function joined(message: unknown): unknown {
  if (!isRecord(message) || !Array.isArray(message.content)) return message;
  const texts = message.content.flatMap(part => (isRecord(part) && typeof part.text === 'string' ? [part.text] : []));
  return texts.length === message.content.length ? { ...message, content: texts.join('\n\n') } : message;
}
