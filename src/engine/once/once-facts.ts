import type { ToolDefinition } from '../define.ts';
import { outputFields } from '../fields.ts';
import type { OnceFacts } from './once.ts';

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
