import { z } from 'zod';
import { isRecord } from '../core/json.ts';
import type { EndpointSettings } from '../core/option.ts';
import { isPlaceholder } from '../core/text.ts';

/** What reading the entries takes. */
export interface EndpointSources {
  /** The value of `endpoints` in `config.json`. */
  raw: unknown;
  /** Ids that are taken. */
  reserved: ReadonlySet<string>;
  /** A variable of the environment or of the `.env` in POLYLOGUE_HOME. */
  variable(name: string): string | undefined;
  warn(message: string): void;
}

const maxEntries = 50;
const id = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,39}$/, 'must be lower-case letters, digits, "-" and "_", beginning with a letter');
const headerName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/, 'is no name of a header');
const headerValue = z.string().regex(/^[\x20-\x7e]*$/, 'must be plain letters, digits and signs (ASCII)');
/** What the client itself decides. */
const ownHeaders = /^(host|content-length|content-type|connection|transfer-encoding|upgrade|te|trailer)$/i;

const entrySchema = z.strictObject({
  id,
  names: z.array(id).max(10).default([]),
  api_url: z.string().superRefine((value, context) => {
    const problem = addressProblem(value);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  }),
  api_key: z.string().trim().max(10_000).optional(),
  api_key_env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
    .optional(),
  models: z
    .array(z.union([z.string().trim().min(1).max(200), z.record(z.string(), z.unknown())]))
    .max(1_000)
    .default([]),
  context_window: z.int().min(1_024).max(100_000_000).optional(),
  headers: z.record(headerName, headerValue).default({}),
});
type Entry = z.infer<typeof entrySchema>;

/** The servers that `config.json` names, and their secrets: keys, and headers that look like one. What can't be used is warned of. */
export function readOwnEndpoints(sources: EndpointSources) {
  const { raw = [], warn } = sources;
  if (!Array.isArray(raw))
    warn('endpoints (config.json) is no list and was ignored; write it as [{"id": "…", "api_url": "…"}].');
  const entries: unknown[] = Array.isArray(raw) ? raw : [];
  if (entries.length > maxEntries) warn(`endpoints (config.json): only the first ${maxEntries} entries are used.`);
  const taken = new Set(sources.reserved);
  const endpoints = entries.slice(0, maxEntries).flatMap((value, index) => {
    const found = readEntry(value, sources, taken);
    if (typeof found !== 'string') return [found];
    warn(`endpoints[${index}]${nameOf(value)} (config.json) is disabled: ${found}.`);
    return [];
  });
  return { endpoints, secrets: endpoints.flatMap(secretsOf) };
}

/** What is wrong with the entry, or the entry. */
function readEntry(value: unknown, sources: EndpointSources, taken: Set<string>): EndpointSettings | string {
  const parsed = entrySchema.safeParse(value);
  if (!parsed.success) return problemOf(parsed.error);
  const { id, names, api_url, models, context_window: contextWindow, headers } = parsed.data;
  const own = [id, ...names];
  const clash = own.find((name, at) => taken.has(name) || own.indexOf(name) !== at);
  if (clash !== undefined) return `the name "${clash}" is taken`;
  const header = Object.keys(headers).find(name => ownHeaders.test(name));
  if (header !== undefined) return `the header ${header} cannot be set`;
  const apiKey = keyOf(parsed.data, sources);
  if (apiKey instanceof Error) return apiKey.message;
  for (const name of own) taken.add(name);
  return { id, names, apiUrl: api_url.trim(), apiKey, models, contextWindow, headers };
}

function keyOf({ api_key, api_key_env }: Entry, { variable }: EndpointSources): string | undefined | Error {
  if (api_key !== undefined && api_key_env !== undefined) return new Error('it has both api_key and api_key_env');
  if (api_key !== undefined && isPlaceholder(api_key)) return new Error('api_key still holds a placeholder');
  if (api_key_env === undefined) return api_key || undefined;
  const value = variable(api_key_env)?.trim();
  return (
    (value && !isPlaceholder(value) && value) || new Error(`${api_key_env}, which its key is to come from, is not set`)
  );
}

function addressProblem(value: string): string | undefined {
  const url = URL.parse(value.trim());
  if (!url || !/^https?:$/.test(url.protocol)) return 'must be a whole http or https address';
  if (url.username !== '' || url.password !== '') return 'must not carry a user or password';
  return url.search !== '' || url.hash !== '' ? 'must not carry a query or fragment' : undefined;
}

/** Never the value: it may be a key in the wrong place. */
function problemOf(error: z.ZodError): string {
  const [issue] = error.issues;
  if (!issue) return 'it is malformed';
  if (issue.code === 'unrecognized_keys') return `${issue.keys.join(', ')} means nothing there`;
  const where = issue.path.join('.');
  if (where === '') return 'it is no object';
  return issue.code === 'invalid_type' && issue.message.endsWith('received undefined')
    ? `${where} is missing`
    : `${where} ${/^(must|is|can)/.test(issue.message) ? issue.message : `is wrong (${issue.message})`}`;
}

const nameOf = (value: unknown): string =>
  isRecord(value) && typeof value.id === 'string' ? ` "${value.id.slice(0, 40)}"` : '';

const secretWords = /auth|key|token|secret|cookie|password/i;

function secretsOf({ apiKey, headers }: EndpointSettings): string[] {
  const values = Object.entries(headers).flatMap(([name, value]) => (secretWords.test(name) ? [value] : []));
  return [...(apiKey === undefined ? [] : [apiKey]), ...values].filter(value => value !== '');
}
