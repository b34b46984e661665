import { fileURLToPath } from 'node:url';
import { type CallToolResult, Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type Document, usualToolsets } from './product.ts';

/** `legacy`: initialize, as every host speaks it now. `modern`: 2026-07-28. `auto`: the client asks which the server knows. */
export type Era = 'legacy' | 'modern' | 'auto';

export const eraVersions = { legacy: '2025-11-25', modern: '2026-07-28' } as const;

/** Where a server is started and what it finds there. */
export interface ServerPlace {
  /** The project; the working directory too. */
  root: string;
  /** Its data folder. */
  home: string;
  env?: Record<string, string>;
  args?: readonly string[];
  /** For Node itself. */
  nodeArgs?: readonly string[];
  /** The main file; absent: the one that was built here. */
  program?: string;
}

const built = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** The built program as a host starts it, with nothing of this process's environment but the path. */
export function serverCommand({ root, home, env, args = [], nodeArgs = [], program = built }: ServerPlace) {
  return {
    command: process.execPath,
    args: [...nodeArgs, program, ...args],
    cwd: root,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: root,
      POLYLOGUE_HOME: home,
      MODEL_LISTS: 'off',
      PROJECT_ROOT: root,
      POLYLOGUE_TOOLSETS: usualToolsets,
      ...env,
    },
  };
}

/** Runs Node this much later: the time of day and the time since the boot are ahead. */
export function clockAhead(ms: number): string[] {
  const source = `import os from 'node:os';
    import { syncBuiltinESMExports } from 'node:module';
    const { now } = Date;
    const { uptime } = os;
    Date.now = () => now() + ${ms};
    os.uptime = () => uptime() + ${ms / 1_000};
    syncBuiltinESMExports();`;
  return ['--import', `data:text/javascript,${encodeURIComponent(source)}`];
}

/** Runs Node with a time of day that is off by this much. */
export function clockOff(ms: number): string[] {
  return ['--import', `data:text/javascript,const now=Date.now;Date.now=()=>now()+${ms}`];
}

export interface SessionCall {
  signal?: AbortSignal;
  onprogress?: (update: { progress: number; message?: string }) => void;
}

export interface McpSession {
  client: Client;
  pid: number;
  /** What the server wrote to stderr so far. */
  log(): string;
  /** The reply's document with `isError`, with the text of a second block as its `content`, after a check that there is nothing else. */
  call(name: string, args?: Record<string, unknown>, options?: SessionCall): Promise<Document>;
  /** Ends the server the hard way, as a crash would. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** The spawned program behind the official client. */
export async function startSession(place: ServerPlace, era: Era = 'legacy'): Promise<McpSession> {
  const transport = new StdioClientTransport({ ...serverCommand(place), stderr: 'pipe' });
  let errors = '';
  transport.stderr?.on('data', chunk => {
    errors += chunk;
  });
  const mode = era === 'modern' ? { pin: eraVersions.modern } : era;
  const client = new Client({ name: 'polylogue-test', version: '1.0.0' }, { versionNegotiation: { mode } });
  const gone = new Promise<void>(resolve => {
    client.onclose = resolve;
  });
  await client.connect(transport);
  const pid = transport.pid ?? 0;
  return {
    client,
    pid,
    log: () => errors,
    async call(name, args = {}, options = {}) {
      const result = await client.callTool({ name, arguments: args }, { timeout: 110_000, ...options });
      const isText = result.content.every(({ type }) => type === 'text');
      if (!isText || result.content.length > 2 || result.structuredContent !== undefined)
        throw new Error(`neither one text block nor a head and a page: ${JSON.stringify(result)}`);
      return documentOf(result);
    },
    async kill() {
      process.kill(pid, 'SIGKILL');
      await gone;
    },
    close: () => client.close(),
  };
}

/** What a program reads of a result: the document of its first block, with the text and the facts that come beside it. */
export function documentOf({ content, isError, _meta }: CallToolResult): Document {
  const [head = '', page] = content.map(block => (block.type === 'text' ? block.text : ''));
  const facts = { ...Object(_meta?.['polylogue/facts']), isError: isError ?? false };
  const { page: _count, ...document } = JSON.parse(head);
  return page === undefined ? { ...JSON.parse(head), ...facts } : { ...document, content: page, ...facts };
}

/** Whether a process is there. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // Nobody has this number any more.
    return false;
  }
}
