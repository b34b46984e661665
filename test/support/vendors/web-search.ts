import type { AnswerStep, BrokenStep } from './fake-vendor.ts';
import type { Refusal } from './refusal.ts';
import { recordsOf, stringOf } from './wire-values.ts';

/** A page that a vendor's search finds, as the vendors tell of pages. */
export interface FoundPage {
  url: string;
  title: string;
  /** Words of it that the answer quotes; absent: it was found and not quoted. */
  quote?: string;
  /** How old the page is, in the vendor's words. */
  age?: string;
}

/** What a step finds; nothing where the request has no tool to find it with. */
export function found(step: AnswerStep | BrokenStep, searches: boolean): readonly FoundPage[] {
  return searches ? (step.finds ?? []) : [];
}

type Body = Record<string, unknown>;

const toolTypes: Readonly<Record<string, (tool: Body) => boolean>> = {
  responses: tool => tool.type === 'web_search',
  messages: tool => stringOf(tool.type).startsWith('web_search_'),
  generate: tool => tool.googleSearch !== undefined || tool.google_search !== undefined,
  chat: tool => tool.type === 'openrouter:web_search',
};

/** Whether a request lets its model search. */
export function maySearch(dialect: string, body: Body): boolean {
  return recordsOf(body.tools).some(tool => toolTypes[dialect]?.(tool) === true);
}

/** What a vendor would say to its own search tool: fields that it does not have, numbers out of range. */
export function checkSearchTool(
  tool: Body,
  fields: readonly string[],
  refuse: (message: string) => Refusal,
): Refusal | undefined {
  const stray = Object.keys(tool).find(key => !fields.includes(key));
  if (stray) return refuse(`tools.0.${stray}: Extra inputs are not permitted`);
  for (const name of ['max_uses', 'max_results', 'max_total_results']) {
    const value = tool[name];
    if (value !== undefined && (typeof value !== 'number' || !Number.isInteger(value) || value < 1))
      return refuse(`tools.0.${name}: Input should be greater than 0`);
  }
  const size = tool.search_context_size;
  if (size !== undefined && !['low', 'medium', 'high'].includes(stringOf(size)))
    return refuse(`tools.0.search_context_size: Input should be 'low', 'medium' or 'high'`);
  return undefined;
}
