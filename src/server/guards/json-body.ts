import type { Refusal } from './refusal.ts';

/** No request of the protocol is nested nearly as deep. */
const deepest = 128;

/** Reads a body as JSON, unless it is nested so deep that whoever walks through it would run out of stack. */
export function readJson(body: string): { value: unknown } | { refusal: Refusal } {
  if (isTooDeep(body)) return { refusal: tooDeep };
  try {
    const value: unknown = JSON.parse(body);
    return { value };
  } catch {
    // The parser's own message quotes what was sent.
    return { refusal: noJson };
  }
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (inText) {
      if (char === '\\') at += 1;
      else if (char === '"') inText = false;
    } else if (char === '"') inText = true;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    if (depth > deepest) return true;
  }
  return false;
}

const tooDeep: Refusal = {
  status: 400,
  class: 'depth',
  message: `The JSON is nested deeper than ${deepest} levels.`,
  next: 'Send plainer arguments.',
};

const noJson: Refusal = {
  status: 400,
  class: 'json',
  message: 'The body is no JSON.',
  next: 'Send one JSON document as application/json.',
};
