import type { LanguageModelV4, LanguageModelV4Message } from '@ai-sdk/provider';
import { adjustedModel } from '../adjusted-model.ts';

/**
 * The same model, with one text where a message has several: for packages that would put the texts of a message together
 * without anything between them.
 */
export function withJoinedTexts(model: LanguageModelV4): LanguageModelV4 {
  return adjustedModel(model, options => ({ ...options, prompt: options.prompt.map(joined) }));
}

function joined(message: LanguageModelV4Message): LanguageModelV4Message {
  if (message.role !== 'user') return message;
  const texts = message.content.flatMap(part => (part.type === 'text' ? [part.text] : []));
  if (texts.length < 2 || texts.length < message.content.length) return message;
  return { ...message, content: [{ type: 'text', text: texts.join('\n\n') }] };
}
