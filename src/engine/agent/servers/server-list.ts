import { z } from 'zod';

const id = z.string().regex(/^[a-zA-Z0-9_-]{1,30}$/, 'takes letters, digits, "_" and "-", at most 30');
const shared = {
  /** Its tools that say that they only read need no approval. */
  trusted: z.boolean().default(false),
  /** The only tools of it that may be used. */
  tools: z.array(z.string()).optional(),
  disabled: z.boolean().default(false),
};
const program = z.object({
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  env: z.record(z.string(), z.string()).default({}),
  cwd: z.string().optional(),
  ...shared,
});
const remote = z.object({
  url: z.url({ protocol: /^https?$/ }),
  headers: z.record(z.string(), z.string()).default({}),
  ...shared,
});
const document = z.object({ mcpServers: z.record(id, z.union([program, remote])) });

/** A server as hosts write it down, checked. */
export type ServerEntry = (z.output<typeof program> | z.output<typeof remote>) & { id: string };

const mostServers = 20;

/** The servers of a file in the form that hosts have (`{"mcpServers": {…}}`), or what is wrong with it. */
export function readServerList(text: string): { servers: ServerEntry[] } | { problem: string } {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    // The file is the operator's; a warning tells him.
    return { problem: 'it is no JSON' };
  }
  const parsed = document.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { problem: `${issue?.path.join('.') ?? 'it'}: ${issue?.message ?? 'is not as it should be'}` };
  }
  const servers = Object.entries(parsed.data.mcpServers).map(([name, entry]) => ({ ...entry, id: name }));
  return { servers: servers.filter(({ disabled }) => !disabled).slice(0, mostServers) };
}
