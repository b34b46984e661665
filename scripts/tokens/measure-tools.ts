import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

export interface Size {
  /** UTF-8 bytes of the JSON text. */
  bytes: number;
  /** Exact o200k tokens of the JSON text. */
  tokens: number;
}

export interface ToolSizes {
  tools: ({ name: string } & Size)[];
  /** The whole list as one JSON array. */
  all: Size;
  /** The listed tools of `core` and `code`. */
  standard: Size;
  /** What those two toolsets would take if the tools that are still missing were like the ones that are there. */
  extrapolated: Size;
  missing: string[];
}

/** The toolsets that are on by default. */
export const standardTools = (
  'chat challenge thinkdeep planner consensus listmodels version threads job ' +
  'analyze codereview precommit debug secaudit refactor testgen docgen tracer apilookup'
).split(' ');

/** What `core + code` may cost a caller's context. */
export const ceilings: Size = { bytes: 17_000, tokens: 4_000 };

function sizeOf(value: unknown): Size {
  const text = JSON.stringify(value);
  // Text that looks like one of the tokenizer's own marks is text here.
  return { bytes: Buffer.byteLength(text), tokens: countTokens(text, { disallowedSpecial: new Set() }) };
}

/** Measures the tools of a `tools/list` answer. */
export function measureTools(tools: readonly { name: string }[]): ToolSizes {
  const standard = tools.filter(tool => standardTools.includes(tool.name));
  const size = sizeOf(standard);
  const factor = standard.length > 0 ? standardTools.length / standard.length : 0;
  return {
    tools: tools.map(tool => ({ name: tool.name, ...sizeOf(tool) })),
    all: sizeOf(tools),
    standard: size,
    extrapolated: { bytes: Math.round(size.bytes * factor), tokens: Math.round(size.tokens * factor) },
    missing: standardTools.filter(name => !tools.some(tool => tool.name === name)),
  };
}

export function isOver(size: Size): boolean {
  return size.bytes > ceilings.bytes || size.tokens > ceilings.tokens;
}
