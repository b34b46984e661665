import type { PromptMessage, PromptPart } from './prompt.ts';
import type { Reading } from './reading.ts';
import { listOf, numberOf, recordOf, recordsOf, stableJson, stringOf } from './wire-values.ts';

/** Reads a body of `:generateContent` or `:streamGenerateContent`, sound or not; the address says which model and way. */
export function readGenerate(body: Record<string, unknown>, address: Record<string, unknown>): Reading {
  const { systemInstruction, generationConfig, toolConfig } = body;
  const { maxOutputTokens, thinkingConfig, responseMimeType, responseJsonSchema } = recordOf(generationConfig);
  const system = partsOf(recordOf(systemInstruction).parts);
  const tools = listOf(body.tools);
  const model = stringOf(address.model);
  const maxOutput = numberOf(maxOutputTokens);
  return {
    model,
    stream: address.stream === true,
    prompt: {
      tools,
      messages: [...(system.length > 0 ? [{ role: 'system', parts: system }] : []), ...turnsOf(body.contents)],
    },
    parameters: {
      model,
      thinkingConfig,
      responseMimeType,
      responseJsonSchema,
      tools: tools.length > 0 ? tools : undefined,
      toolConfig,
    },
    ...(maxOutput !== undefined && { maxOutput }),
  };
}

/** A message without a role is the user's. */
function turnsOf(contents: unknown): PromptMessage[] {
  return recordsOf(contents).map(({ role, parts }) => ({ role: stringOf(role) || 'user', parts: partsOf(parts) }));
}

function partsOf(parts: unknown): PromptPart[] {
  return recordsOf(parts).map(part => {
    if (typeof part.text === 'string') return { text: part.text };
    const { mimeType } = recordOf(part.inlineData ?? part.fileData);
    if (mimeType === undefined) return { text: stableJson(part) };
    const kind = stringOf(mimeType).startsWith('image/') ? 'image' : 'document';
    return { text: `[${kind}]`, opaque: stableJson(part) };
  });
}
