import type { Prompt } from './prompt.ts';

/** What the rest of the fake needs to know of a request, whatever its dialect. */
export interface Reading {
  model: string;
  stream: boolean;
  prompt: Prompt;
  /** What `RecordedRequest.parameters` says, as a value. */
  parameters: unknown;
  /** Tokens that the answer may have, reasoning included. */
  maxOutput?: number;
  /** Tokens of the prompt that the request itself allows. */
  window?: number;
}
