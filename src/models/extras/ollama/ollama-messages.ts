import type { LanguageModelV4CallOptions, LanguageModelV4Message, SharedV4Warning } from '@ai-sdk/provider';
import type { JsonObject } from '../../../core/json.ts';

/** A message as the interface takes it: one text, images and calls beside it; each result is a message of its own. */
export function ollamaMessages(message: LanguageModelV4Message, warnings: SharedV4Warning[]): JsonObject[] {
  const { role, content } = message;
  if (typeof content === 'string') return [{ role, content }];
  if (message.role === 'tool')
    return message.content.flatMap(part => (part.type === 'tool-result' ? [resultOf(part)] : []));
  const texts: string[] = [];
  const thoughts: string[] = [];
  const images: string[] = [];
  const calls: JsonObject[] = [];
  for (const part of content) {
    if (part.type === 'text') texts.push(part.text);
    else if (part.type === 'reasoning') thoughts.push(part.text);
    else if (part.type === 'tool-call')
      calls.push({ function: { name: part.toolName, arguments: jsonOf(part.input) } });
    else if (part.type === 'file' && part.data.type === 'data' && part.mediaType.startsWith('image')) {
      images.push(base64(part.data.data));
    } else warnings.push({ type: 'unsupported', feature: `${part.type} parts` });
  }
  return [
    {
      role,
      content: texts.join('\n\n'),
      ...(thoughts.length > 0 ? { thinking: thoughts.join('\n') } : {}),
      ...(images.length > 0 ? { images } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
  ];
}

type Tool = Extract<LanguageModelV4Message, { role: 'tool' }>;
type Result = Extract<Tool['content'][number], { type: 'tool-result' }>;

/** The server pairs results with calls by their order and the tool's name. */
function resultOf({ toolName, output }: Result): JsonObject {
  const isText = output.type === 'text' || output.type === 'error-text';
  return { role: 'tool', tool_name: toolName, content: isText ? output.value : JSON.stringify(output) };
}

/** A server knows no way to forbid calls but not to offer any. */
export function ollamaTools({ tools = [], toolChoice }: LanguageModelV4CallOptions): JsonObject[] {
  if (toolChoice?.type === 'none') return [];
  return tools.flatMap(tool => {
    if (tool.type !== 'function') return [];
    const { name, description = '', inputSchema } = tool;
    return [{ type: 'function', function: { name, description, parameters: jsonOf(inputSchema) } }];
  });
}

function jsonOf(value: unknown): JsonObject {
  const copy: JsonObject = JSON.parse(JSON.stringify(value));
  return copy;
}

function base64(data: string | Uint8Array): string {
  return typeof data === 'string'
    ? data
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}
