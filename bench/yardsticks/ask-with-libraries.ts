import { createOpenAI } from '@ai-sdk/openai';

const { VENDOR_URL = '' } = process.env;
const openai = createOpenAI({ apiKey: 'test-key', baseURL: VENDOR_URL });

/** Asks the vendor at VENDOR_URL with its package, and nothing of ours. */
export async function ask(prompt: string, onText: (text: string) => void): Promise<void> {
  const question = { role: 'user' as const, content: [{ type: 'text' as const, text: prompt }] };
  const { stream } = await openai.responses('gpt-5').doStream({ prompt: [question] });
  for await (const part of stream) if (part.type === 'text-delta') onText(part.delta);
}
