import type { ActionContext } from '../../../../calls/action-context.ts';
import type { ActionCall } from '../../../../calls/actions/actions.ts';
import { schemaOf } from '../../../../calls/argument-schema.ts';
import { parseArguments } from '../../../../calls/arguments.ts';
import type { ToolDefinition } from '../../../../calls/tool.ts';
import { requestId } from '../../../../core/ids.ts';
import type { AgentTool } from './agent-tool.ts';
import { commandTool } from './command-tool.ts';
import type { LocalToolServices } from './local-tool.ts';
import { gitTools, readTools } from './read-tools.ts';
import { writeTools } from './write-tools.ts';

/** All that an agent can do by itself, and the tools that it is lent. */
export async function createLocalTools(parts: LocalToolServices): Promise<AgentTool[]> {
  // Few use it, and nobody by default: what it takes is loaded only then.
  const fetching = parts.fetches ? [(await import('./fetch-tool.ts')).fetchTool()] : [];
  const own = [...readTools(parts), ...gitTools(parts), ...writeTools(parts), commandTool(parts)];
  return [...own, ...fetching, ...parts.lend(parts)];
}

/** Tools of the product that an agent may call too, each call asked about; those that ask a model are left out. */
export function lentTools(
  lent: readonly ToolDefinition[],
  contextOf: (call: ActionCall) => ActionContext,
  { owner, root, reqId, tool: runner }: LocalToolServices,
): AgentTool[] {
  const principal = { owner, root, client: runner };
  return lent.flatMap((tool): AgentTool[] => {
    const { name, description, effects, mode } = tool;
    if (mode.kind !== 'action') return [];
    const schema = schemaOf(tool);
    return [
      {
        ...{ name, description, inputSchema: { ...schema.listing.inputSchema, type: 'object' } },
        effect: effects.destroys ? 'run' : 'network',
        // What is thrown is told to the model.
        check: args => ({ args: parseArguments(tool, schema, args).args }),
        run: async (args, { signal }) =>
          JSON.stringify(await mode.run(args, contextOf({ principal, signal, reqId: requestId(reqId), tool: name }))),
      },
    ];
  });
}
