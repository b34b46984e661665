import type { ToolDefinition } from '../../calls/tool.ts';

/** What a host tells its model of the tools as a whole; hosts cut it at 2 KB. */
export function instructionsFor(tools: readonly ToolDefinition[]): string {
  const workflows = tools.filter(({ shape }) => shape.kind === 'workflow').map(({ name }) => name);
  return [
    'Polylogue asks other models and remembers the conversation.',
    'Pass the continuation_id of a reply (or "last") to any tool and any model to go on; files are sent once, then as changes.',
    'Use exactly the model that the user names; else leave model out.',
    workflows.length > 0 &&
      `${workflows.join(', ')} go step by step: do the required_actions yourself before you send the next step.`,
    'Never guess a continuation_id: "threads" lists them.',
  ]
    .filter(Boolean)
    .join(' ');
}
