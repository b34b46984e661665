import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import type { ModelQuestion } from '../ask-model.ts';

/** The tools of a question in the SDK's words. */
export function toolsOf({ tools = [] }: ModelQuestion): LanguageModelV4FunctionTool[] {
  return tools.map(({ name, description, inputSchema }) => {
    const schema: LanguageModelV4FunctionTool['inputSchema'] = JSON.parse(JSON.stringify(inputSchema));
    return { type: 'function', name, description, inputSchema: schema };
  });
}
