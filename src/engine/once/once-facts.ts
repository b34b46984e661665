import { outputFields } from '../../calls/fields.ts';
import type { ToolDefinition } from '../../calls/tool.ts';
import type { Touches } from './identify.ts';

/** What has to be known of a tool. */
export interface OnceFacts extends Touches {
  /** Stores its question in a thread before anybody is asked. */
  threaded: boolean;
  /** Looks into the project for itself, whatever the call names. */
  looks: boolean;
}

/** The tools that ask somebody who is paid, and what has to be known of each to ask only once. */
export function onceFacts(tools: readonly ToolDefinition[]): ReadonlyMap<string, OnceFacts> {
  const byName = new Map(tools.map(tool => [tool.name, tool]));
  const costly = tools.filter(({ effects }) => effects.network);
  return new Map(
    costly.map(({ name, shape, writesBy = [] }) => {
      const kinds = shape.kind === 'dispatch' ? shape.to.flatMap(to => byName.get(to)?.shape ?? []) : [shape];
      return [
        name,
        {
          threaded: kinds.every(({ kind }) => kind !== 'wrapper' && kind !== 'agent'),
          looks: kinds.some(each => each.kind === 'workflow' && each.evidence !== undefined),
          edits: kinds.some(({ kind }) => kind === 'agent'),
          writesTo: [...writesBy, ...Object.keys(outputFields)],
        },
      ];
    }),
  );
}
