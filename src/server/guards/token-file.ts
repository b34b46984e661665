import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { configError } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import { digestOf, isToken, shortestToken, type TokenEntry } from '../access/tokens.ts';

const word = z.string().min(1).max(200);
const name = z.string().regex(/^[A-Za-z0-9_.@-]{1,64}$/, 'takes 1 to 64 letters, digits, ".", "_", "@" and "-"');
const entrySchema = z.strictObject({
  name,
  token: z
    .string()
    .refine(isToken, `takes at least ${shortestToken} printable characters without spaces and commas`)
    .optional(),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/i, 'takes 64 hexadecimal digits')
    .optional(),
  owner: name.optional(),
  toolsets: z.array(word).optional(),
  allow: z.array(word).optional(),
  deny: z.array(word).optional(),
  read_only: z.boolean().default(false),
  roots: z.array(z.string().refine(isAbsolute, 'takes absolute paths')).min(1).optional(),
  max_cost_per_day: z.number().nonnegative().optional(),
});
const fileSchema = z.strictObject({ tokens: z.array(entrySchema).min(1) });

/** Reads the operator's file of tokens; throws an `AppError` that says which entry is wrong, and never shows a token. */
export function readTokens(text: string, path: string): TokenEntry[] {
  const parsed = fileSchema.safeParse(jsonIn(text, path));
  if (!parsed.success) {
    const told = parsed.error.issues
      .slice(0, 5)
      .map(issue => `${issue.path.join('.') || 'the file'}: ${issue.message}`);
    throw unusable(path, told.join('; '));
  }
  const entries = parsed.data.tokens.map(entry => entryOf(entry, path));
  const seen = new Set<string>();
  for (const { digest, caller } of entries) {
    for (const key of [digest.toString('hex'), `name ${caller.name}`]) {
      if (seen.has(key)) throw unusable(path, `"${caller.name}" or its token stands there twice`);
      seen.add(key);
    }
  }
  return entries;
}

/**
 * The same file with another token in one entry, as its hash; undefined where there is no such entry, or it does not hold the
 * token of this digest (hexadecimal) any more.
 */
export function withToken(
  text: string,
  path: string,
  before: string | undefined,
  { digest, caller }: TokenEntry,
): string | undefined {
  const document = jsonIn(text, path);
  if (!isRecord(document) || !Array.isArray(document.tokens)) return undefined;
  const told: unknown[] = document.tokens;
  const isMeant = (entry: unknown) => isRecord(entry) && entry.name === caller.name && hashIn(entry) === before;
  if (!told.some(isMeant)) return undefined;
  const tokens = told.map(entry => {
    if (!isRecord(entry) || !isMeant(entry)) return entry;
    const { token: _old, ...kept } = entry;
    return { ...kept, sha256: digest.toString('hex') };
  });
  return `${JSON.stringify({ ...document, tokens }, undefined, 2)}\n`;
}

function entryOf(entry: z.infer<typeof entrySchema>, path: string): TokenEntry {
  const { token, sha256 } = entry;
  if ((token === undefined) === (sha256 === undefined)) {
    throw unusable(path, `"${entry.name}" needs either "token" or "sha256"`);
  }
  const { toolsets, allow, deny, roots, max_cost_per_day: maxCostPerDay } = entry;
  return {
    digest: token === undefined ? Buffer.from(sha256 ?? '', 'hex') : digestOf(token),
    ...(token !== undefined && { secret: token }),
    caller: {
      name: entry.name,
      owner: entry.owner ?? entry.name,
      permissions: {
        readOnly: entry.read_only,
        ...(toolsets && { toolsets }),
        ...(allow && { allow }),
        ...(deny && { deny }),
        ...(roots && { roots }),
        ...(maxCostPerDay !== undefined && { maxCostPerDay }),
      },
    },
  };
}

/** The digest of an entry's token, in hexadecimal. */
function hashIn({ token, sha256 }: Record<string, unknown>): string | undefined {
  if (typeof token === 'string') return digestOf(token).toString('hex');
  return typeof sha256 === 'string' ? sha256.toLowerCase() : undefined;
}

function jsonIn(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What the parser says may quote a token.
    throw unusable(path, 'it is no JSON');
  }
}

function unusable(path: string, why: string) {
  return configError(`The file of tokens ${path} can't be used: ${why}.`, {
    next: 'It takes {"tokens": [{"name", "token" or "sha256", "owner", "toolsets", "allow", "deny", "read_only", "roots", "max_cost_per_day"}]}.',
  });
}
