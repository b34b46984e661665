import { schemaOf } from '../../../../calls/argument-schema.ts';
import { parseArguments } from '../../../../calls/arguments.ts';
import type { ParsedCall } from '../../../../calls/call-record.ts';
import type { ToolDefinition } from '../../../../calls/tool.ts';
import { requestId } from '../../../../core/ids.ts';
import type { JsonObject } from '../../../../core/json.ts';
import type { ToolRequest } from '../../../../core/tool-host.ts';
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
  return [...own, ...fetching, ...parts.productTools(parts)];
}

/** Calls a tool as a part of a run, out of whose money it is paid. Throws what it fails with. */
export type CallInnerTool = (
  tool: ToolDefinition,
  args: Record<string, unknown>,
  run: Pick<ParsedCall, 'reqId' | 'signal'> & Pick<ToolRequest, 'principal'>,
) => Promise<JsonObject>;

/** Models that are asked by a tool may take as long as when a client asks them. */
const askingMs = 600_000;

/** Tools of the product that an agent may call too, each call asked about. Those with a thread begin one of their own. */
export function productTools(lent: readonly ToolDefinition[], call: CallInnerTool, run: LocalToolServices) {
  const { owner, root, reqId, tool: runner } = run;
  const principal = { owner, root, client: runner };
  return lent.map(({ fields: all, accepts: more, ...rest }): AgentTool => {
    const { continuation_id: _, ...fields } = all;
    const { continuation_id: __, ...accepts } = more ?? {};
    const tool: ToolDefinition = { ...rest, fields, accepts };
    const { name, description, effects, mode } = tool;
    const schema = schemaOf(tool);
    return {
      ...{ name, description, inputSchema: { ...schema.listing.inputSchema, type: 'object' } },
      effect: effects.destroys ? 'run' : 'network',
      ...(mode.kind !== 'action' && { ms: askingMs }),
      // What is thrown is told to the model.
      check: args => ({ args: parseArguments(tool, schema, args).args }),
      async run(args, { signal }) {
        const document = await call(tool, args, { principal, signal, reqId: requestId(reqId) });
        // What its caller could go on with is for others than a model that can't.
        const { continuation_offer: _1, metadata: _2, ...told } = document;
        return JSON.stringify(told);
      },
    };
  });
}
