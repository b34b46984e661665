import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProduct, serveStdio } from '../../src/app/app.ts';
import type { Product } from '../../src/app/compose-product.ts';
import { tables } from '../../src/app/settings.ts';
import { systemEnvironment } from '../../src/app/system-environment.ts';
import { readOwnEndpoints } from '../../src/config/endpoints.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Clock, Random } from '../../src/core/ports.ts';
import type { ProgressUpdate } from '../../src/core/tool-host.ts';
import { forgetWriters, keepWriters } from './kept-writers.ts';

// A reply as tests look into it.
// biome-ignore lint/suspicious/noExplicitAny: replies are free-form JSON documents
export type Document = any;

/** As they are by default. Said, what is offered does not depend on the CLIs of this machine. */
export const usualToolsets = 'core,code,files';

export interface CallOptions {
  signal?: AbortSignal;
  onProgress?: (update: ProgressUpdate) => void;
  owner?: string;
}

export interface TestProduct {
  product: Product;
  home: string;
  /** What was written to stderr. */
  log: string[];
  /** The reply's document, whatever its status. */
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Document>;
  /** Serves a client over a pair of streams, with a product of its own on the same data. */
  serve(streams: Parameters<typeof serveStdio>[2], onError: (error: Error) => void): ReturnType<typeof serveStdio>;
  /** Closes this product and starts another on the same data. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export interface TestProductOptions {
  root: string;
  env?: Record<string, string>;
  clock?: Clock;
  random?: Random;
  /** What `config.json` in the data folder holds. */
  config?: Record<string, unknown>;
  /** The environment as programs may see it that are started; absent: that of the tests. */
  childEnv?: Record<string, string>;
  /** The user's home folder; absent: the data folder. */
  homeDir?: string;
}

/** The whole product in this process: real settings, real store in a folder of its own, vendors by base address. */
export async function testProduct({
  root,
  env = {},
  clock,
  random,
  config: file,
  childEnv,
  homeDir,
}: TestProductOptions): Promise<TestProduct> {
  const home = await mkdtemp(join(tmpdir(), 'polylogue-home-'));
  keepWriters(home);
  const log: string[] = [];
  const around = {
    ...systemEnvironment(),
    cwd: root,
    homeDir: homeDir ?? home,
    writeError: (line: string) => void log.push(line),
  };
  const surroundings = { ...around, ...(clock && { clock }), ...(random && { random }), ...(childEnv && { childEnv }) };
  const configured = () =>
    loadConfig({
      tables,
      // Tests count what vendors are asked.
      env: { POLYLOGUE_HOME: home, PROJECT_ROOT: root, POLYLOGUE_TOOLSETS: usualToolsets, MODEL_LISTS: 'off', ...env },
      argvFlags: {},
      homeDir: homeDir ?? home,
      platform: 'linux',
      cwd: root,
      readEndpoints: readOwnEndpoints,
      readFile: path => (file && path === join(home, 'config.json') ? JSON.stringify(file) : undefined),
    });
  const start = async () => createProduct(configured(), surroundings);
  const remove = () => {
    forgetWriters(home);
    return rm(home, { recursive: true, force: true });
  };
  const product = await start().catch(async error => {
    await remove();
    throw error;
  });
  const self: TestProduct = {
    product,
    home,
    log,
    async call(name, args = {}, { signal = new AbortController().signal, onProgress, owner = 'local' } = {}) {
      const principal = { owner, root: self.product.root, client: 'test' };
      const reply = await self.product.host.call({ name, arguments: args, principal, onProgress }, signal);
      return { ...reply.document, isError: reply.isError };
    },
    serve: (streams, onError) => serveStdio(configured(), surroundings, streams, onError),
    async restart() {
      await self.product.close();
      self.product = await start();
    },
    async close() {
      await self.product.close();
      await remove();
    },
  };
  return self;
}

/** Settings that send the vendors' calls to fake ones. */
export function vendorEnv(urls: {
  google?: string;
  openai?: string;
  anthropic?: string;
  openrouter?: string;
  ollama?: string;
  moonshot?: string;
  zhipu?: string;
  azure?: string;
  xai?: string;
  groq?: string;
  deepseek?: string;
  minimax?: string;
}): Record<string, string> {
  return {
    MODEL_LISTS: 'off',
    ...(urls.google && { GEMINI_API_KEY: 'test-key', GEMINI_BASE_URL: urls.google }),
    ...(urls.openai && { OPENAI_API_KEY: 'test-key', OPENAI_BASE_URL: urls.openai }),
    ...(urls.anthropic && { ANTHROPIC_API_KEY: 'test-key', ANTHROPIC_BASE_URL: urls.anthropic }),
    ...(urls.openrouter && { OPENROUTER_API_KEY: 'test-key', OPENROUTER_BASE_URL: urls.openrouter }),
    ...(urls.azure && { AZURE_OPENAI_API_KEY: 'test-key', AZURE_OPENAI_ENDPOINT: urls.azure }),
    ...(urls.xai && { XAI_API_KEY: 'test-key', XAI_BASE_URL: urls.xai }),
    ...(urls.groq && { GROQ_API_KEY: 'test-key', GROQ_BASE_URL: urls.groq }),
    ...(urls.deepseek && { DEEPSEEK_API_KEY: 'test-key', DEEPSEEK_BASE_URL: urls.deepseek }),
    ...(urls.minimax && { MINIMAX_API_KEY: 'test-key', MINIMAX_BASE_URL: urls.minimax }),
    ...(urls.moonshot && { MOONSHOT_API_KEY: 'test-key', MOONSHOT_BASE_URL: urls.moonshot }),
    ...(urls.zhipu && { ZHIPUAI_API_KEY: 'test-key', ZHIPU_BASE_URL: urls.zhipu }),
    ...(urls.ollama && { OLLAMA_HOST: urls.ollama, OLLAMA_API_KEY: 'test-key' }),
  };
}
