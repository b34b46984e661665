import { z } from 'zod';
import type { JsonObject } from '../../../../core/json.ts';
import type { AgentTool, ToolOutput, ToolSurroundings } from '../agent.ts';

interface HandSpec<Fields extends z.ZodRawShape> extends Pick<AgentTool, 'name' | 'description' | 'effect'> {
  fields: Fields;
  show?(args: z.output<z.ZodObject<Fields>>): string;
  /** See `AgentTool`. */
  verify?(args: z.output<z.ZodObject<Fields>>, around: ToolSurroundings): Promise<string | undefined>;
  run(args: z.output<z.ZodObject<Fields>>, around: ToolSurroundings): Promise<string | ToolOutput>;
}

/** A tool whose arguments are described by fields: their schema, their check and their types come from them. */
export function hand<const Fields extends z.ZodRawShape>(spec: HandSpec<Fields>): AgentTool {
  const schema = z.strictObject(spec.fields);
  const { name, description, effect, show, verify } = spec;
  return {
    name,
    description,
    effect,
    inputSchema: schemaOf(schema),
    check(args) {
      const parsed = schema.safeParse(args);
      return parsed.success ? { args } : { problem: problemOf(parsed.error) };
    },
    ...(show && { show: args => show(schema.parse(args)) }),
    ...(verify && { verify: async (args, around) => verify(schema.parse(args), around) }),
    run: async (args, around) => spec.run(schema.parse(args), around),
  };
}

function schemaOf(schema: z.ZodType): JsonObject & { type: 'object' } {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  const copy: JsonObject = JSON.parse(JSON.stringify(rest));
  return { ...copy, type: 'object' };
}

function problemOf(error: z.ZodError): string {
  const told = error.issues.slice(0, 5).map(({ path, message }) => {
    const where = path.map(String).join('.');
    return where === '' ? message : `"${where}": ${message}`;
  });
  return `${told.join('; ')}.`;
}
