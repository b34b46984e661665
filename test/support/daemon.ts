import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Daemon } from '../../src/server/daemon/daemon.ts';
import { connectHttp, type HttpSession, type HttpSessionOptions } from './http-session.ts';
import type { Era } from './mcp-session.ts';
import { type TestProduct, type TestProductOptions, testProduct } from './product.ts';

export interface TestDaemonOptions extends TestProductOptions {
  /** Entries of the file of tokens. */
  tokens?: readonly Record<string, unknown>[];
}

export interface TestDaemon extends Pick<TestProduct, 'product' | 'log' | 'home'> {
  daemon: Daemon;
  url: string;
  /** The file of tokens, where there is one. */
  tokensFile: string;
  /** A request as a program sends it; `token` becomes its `Authorization`. */
  ask(path: string, init?: RequestInit & { token?: string }): Promise<Response>;
  connect(era: Era, options?: HttpSessionOptions): Promise<HttpSession>;
  close(): Promise<void>;
}

/** The whole product behind a free port of this machine. */
export async function testDaemon({ tokens, env, ...options }: TestDaemonOptions): Promise<TestDaemon> {
  const folder = await mkdtemp(join(tmpdir(), 'polylogue-tokens-'));
  const tokensFile = join(folder, 'tokens.json');
  if (tokens) await writeFile(tokensFile, JSON.stringify({ tokens }), { mode: 0o600 });
  const more = { DETACHED_GRACE_SECONDS: '1', ...(tokens && { POLYLOGUE_TOKENS_FILE: tokensFile }), ...env };
  const running = await testProduct({ ...options, env: more });
  const daemon = await running.product.openDaemon({ port: 0 });
  const { url } = daemon;
  const sessions: HttpSession[] = [];
  return {
    daemon,
    product: running.product,
    log: running.log,
    home: running.home,
    url,
    tokensFile,
    ask(path, { token, headers, ...init } = {}) {
      const all = new Headers(headers);
      if (token !== undefined) all.set('Authorization', `Bearer ${token}`);
      return fetch(`${url}${path}`, { ...init, headers: all });
    },
    async connect(era, sessionOptions) {
      const session = await connectHttp(url, era, sessionOptions);
      sessions.push(session);
      return session;
    },
    async close() {
      // Whoever is gone already is no trouble.
      await Promise.all(sessions.map(session => session.close().catch(() => undefined)));
      await daemon.close();
      await running.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
