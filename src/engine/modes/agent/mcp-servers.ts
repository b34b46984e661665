import { z } from 'zod';
import { asError } from '../../../core/errors.ts';
import { type JsonObject, jsonOf, parsedJson, recordIn } from '../../../core/json.ts';
import { safeCut } from '../../../core/text.ts';
import { boundedFetch } from '../../../models/resilience/bounded-fetch.ts';
import { programNamed, variablesFor } from '../../../workspace/programs.ts';
import type { AgentTool, ToolOutput } from './local-tools/agent-tool.ts';
import type { LocalToolServices } from './local-tools/local-tool.ts';

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

const maxServers = 20;

/** The servers of a file in the form that hosts have (`{"mcpServers": {…}}`), or what is wrong with it. */
export function readServerList(text: string): { servers: ServerEntry[] } | { problem: string } {
  const raw = parsedJson(text);
  if (raw === undefined) return { problem: 'it is no JSON' };
  const parsed = document.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { problem: `${issue?.path.join('.') ?? 'it'}: ${issue?.message ?? 'is not as it should be'}` };
  }
  const servers = Object.entries(parsed.data.mcpServers).map(([name, entry]) => ({ ...entry, id: name }));
  return { servers: servers.filter(({ disabled }) => !disabled).slice(0, maxServers) };
}

interface ServersParts extends Pick<LocalToolServices, 'childEnv' | 'sandbox'> {
  servers: readonly ServerEntry[];
  version: string;
  /** Working directory of servers that name none. */
  root: string;
  warn(message: string): void;
  signal: AbortSignal;
}

export interface OpenServers {
  tools: AgentTool[];
  close(): Promise<void>;
}

const connectMs = 20_000;
const callMs = 600_000;
const maxDescriptionLength = 1_000;
const maxTools = 60;
/** Characters; every question has them all. */
const maxSchemaLength = 20_000;

/** What a server says of its own outputs is not checked: an expression in it could take for ever, and this process with it. */
const unchecked = {
  getValidator: () => (input: unknown) => ({
    valid: true as const,
    data: JSON.parse(JSON.stringify(input ?? null)),
    errorMessage: undefined,
  }),
};

/** Connects to all servers at once. One that can't be reached is left out with a warning: the run goes on without it. */
export async function openServers(parts: ServersParts): Promise<OpenServers> {
  const opened = await Promise.all(parts.servers.map(server => openOne(parts, server)));
  return {
    tools: opened.flatMap(({ tools }) => tools),
    close: async () => void (await Promise.all(opened.map(({ close }) => close()))),
  };
}

async function openOne(parts: ServersParts, server: ServerEntry): Promise<OpenServers> {
  const { Client } = await import('@modelcontextprotocol/client');
  const self = { name: 'polylogue-agent', version: parts.version };
  const client = new Client(self, { versionNegotiation: { mode: 'auto' }, jsonSchemaValidator: unchecked });
  // A server that will not go is ended by its transport; the run is over in any case.
  const close = () => client.close().catch(() => undefined);
  try {
    await client.connect(await transportOf(parts, server), { timeout: connectMs, signal: parts.signal });
    const { tools } = await client.listTools(undefined, { timeout: connectMs, signal: parts.signal });
    const named = tools.filter(({ name }) => server.tools?.includes(name) ?? true);
    const short = named.filter(({ inputSchema }) => JSON.stringify(inputSchema).length <= maxSchemaLength);
    const wanted = short.slice(0, maxTools);
    const leaveOut = (left: typeof tools, why: string) => {
      const names = left.map(({ name }) => name).join(', ');
      if (names !== '') parts.warn(safeCut(`Tools of ${server.id} were left out, ${why}: ${names}`, 500));
    };
    const long = named.filter(tool => !short.includes(tool));
    leaveOut(long, 'their schemas are too long');
    leaveOut(short.slice(maxTools), `it has more than ${maxTools}`);
    return { tools: wanted.map(tool => toolOf(client, server, tool)), close };
  } catch (error) {
    await close();
    parts.warn(`The MCP server ${server.id} cannot be used: ${safeCut(asError(error).message, 300)}`);
    return { tools: [], close: async () => {} };
  }
}

async function transportOf({ childEnv, root, sandbox }: ServersParts, server: ServerEntry) {
  if ('url' in server) {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    return new StreamableHTTPClientTransport(new URL(server.url), {
      requestInit: { headers: server.headers },
      fetch: boundedFetch,
    });
  }
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  const { file, path } = await programNamed(server.command, { env: childEnv, projects: [...sandbox.roots, root] });
  return new StdioClientTransport({
    command: file,
    args: server.args,
    cwd: server.cwd ?? root,
    env: { ...variablesFor(childEnv), PATH: path, ...server.env },
    stderr: 'ignore',
  });
}

type Client = import('@modelcontextprotocol/client').Client;

type ServerTool = Awaited<ReturnType<Client['listTools']>>['tools'][number];

function toolOf(client: Client, server: ServerEntry, tool: ServerTool): AgentTool {
  const readOnly = server.trusted && tool.annotations?.readOnlyHint === true;
  return {
    name: `${server.id}__${tool.name}`.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64),
    description: safeCut(tool.description ?? tool.title ?? tool.name, maxDescriptionLength),
    inputSchema: schemaOf(tool.inputSchema),
    effect: readOnly ? 'read' : 'run',
    async run(args, { signal }) {
      return outputOf(await client.callTool({ name: tool.name, arguments: args }, { signal, timeout: callMs }));
    },
  };
}

const untaken: readonly string[] = ['$schema', 'oneOf', 'anyOf', 'allOf', 'not'];

/** Vendors take neither a dialect nor alternatives at the top; the server checks its arguments itself. */
function schemaOf(schema: unknown): JsonObject & { type: 'object' } {
  const entries = Object.entries(recordIn(schema));
  return { ...jsonOf(Object.fromEntries(entries.filter(([name]) => !untaken.includes(name)))), type: 'object' };
}

function outputOf({ content, structuredContent, isError }: Awaited<ReturnType<Client['callTool']>>): ToolOutput {
  const texts = content.map(block => {
    if (block.type === 'text') return block.text;
    if (block.type === 'resource_link') return `[${block.type}: ${block.name}, ${block.uri}]`;
    if (block.type !== 'resource') return `[${block.type}]`;
    return 'text' in block.resource ? block.resource.text : `[${block.type}: ${block.resource.uri}]`;
  });
  const structured = texts.length === 0 && structuredContent !== undefined ? [JSON.stringify(structuredContent)] : [];
  return { text: [...texts, ...structured].join('\n'), failed: isError === true };
}
