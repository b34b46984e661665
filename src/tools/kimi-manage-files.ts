import { z } from 'zod';
import { type ActionContext, defineAction, type KeptDocument } from '../calls/tool.ts';
import { missingError, unconfirmed } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import { counted } from '../core/text.ts';

const operations = ['list', 'delete', 'cleanup_all', 'cleanup_orphaned', 'cleanup_expired'] as const;
const day = 24 * 3_600;
const expiredAfterDays = 30;
const usualLimit = 100;

export const kimiManageFiles = defineAction({
  name: 'kimi_manage_files',
  title: 'Manage Kimi files',
  description: 'List or delete uploads at Kimi: one, all, not from Polylogue, or over 30 days old.',
  toolset: 'files',
  tier: 'manager',
  needs: ['moonshot'],
  effects: { writes: true, destroys: true, network: true, idempotent: true },
  fields: {
    operation: z.enum(operations),
    file_id: z.string().optional(),
    dry_run: z.boolean().optional(),
    confirm: z.boolean().optional(),
  },
  readingFields: { operation: z.enum(['list']) },
  accepts: { limit: z.int().min(1).max(1_000).optional() },
  async run(args, context) {
    const { operation, file_id: id, dry_run: dryRun, confirm, limit = usualLimit } = args;
    if (operation === 'list') return listed(await context.uploads.list(), limit);
    const chosen = operation === 'delete' ? [id ?? unnamed()] : (await doomed(context, operation)).slice(0, limit);
    if (dryRun === true) return { status: 'success', dry_run: true, would_delete: chosen };
    if (chosen.length > 0 && confirm !== true)
      throw unconfirmed(`${counted(chosen.length, 'file')} at Kimi`, '; dry_run: true shows what would go');
    return removeAll(context, chosen);
  },
});

const listed = (files: readonly KeptDocument[], limit: number): JsonObject => ({
  status: 'success',
  count: files.length,
  bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
  files: files.slice(0, limit).map(({ id, filename, bytes, createdAt, status, ours }) => {
    const created_at = new Date(createdAt * 1_000).toISOString();
    return { file_id: id, filename, bytes, status, created_at, uploaded_from_here: ours };
  }),
});

function unnamed(): never {
  throw missingError('file_id', 'delete needs the id of a file.', 'Send file_id: an id from operation "list".');
}

/** The oldest first: a limit spares what is newest. */
async function doomed({ uploads, now }: ActionContext, operation: (typeof operations)[number]): Promise<string[]> {
  const oldest = (await uploads.list()).toReversed();
  const expired = now / 1_000 - expiredAfterDays * day;
  return oldest
    .filter(({ ours, createdAt }) => {
      if (operation === 'cleanup_orphaned') return !ours;
      return operation === 'cleanup_all' || createdAt < expired;
    })
    .map(({ id }) => id);
}

async function removeAll({ uploads }: ActionContext, ids: readonly string[]): Promise<JsonObject> {
  const deleted: string[] = [];
  const missing: string[] = [];
  for (const id of ids) ((await uploads.remove(id)) ? deleted : missing).push(id);
  return { status: 'success', deleted, missing: missing.length > 0 ? missing : undefined };
}
