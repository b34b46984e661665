import { z } from 'zod';
import { continuationId } from '../calls/fields.ts';
import { type ActionContext, defineAction } from '../calls/tool.ts';
import { inputError, missingError, unconfirmed } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import { printablePath } from '../core/text.ts';
import {
  cursorBehind,
  endsExchange,
  lostBeginning,
  pageBehind,
  type Thread,
  type ThreadHead,
  type Turn,
} from '../core/thread.ts';
import { roundedUsd } from '../core/usage.ts';

/** Of a reply's room: what a page's turns take; the rest is for what stands around them. */
const pageShare = 0.8;
/** What stands around each turn. */
const turnTokens = 150;
const maxListed = 50;

const reading = ['list', 'search', 'read', 'sent'] as const;
const actions = [...reading, 'fork', 'delete', 'delete_all'] as const;

const readingFields = {
  action: z.enum(reading),
  continuation_id: continuationId,
  query: z.string().describe('search: words').optional(),
  cursor: z.string().describe('list, read: previous next_cursor').optional(),
  everywhere: z.boolean().describe('list, search: all projects').optional(),
};

const fields = {
  ...readingFields,
  action: z.enum(actions),
  turn: z.int().min(1).describe('fork: last turn to keep').optional(),
  confirm: z.boolean().describe('delete: must be true').optional(),
};

export const threads = defineAction({
  name: 'threads',
  title: 'Threads',
  description: 'List, search, read, fork or delete this project\'s threads; "sent" shows what each model received.',
  toolset: 'core',
  effects: { writes: true, destroys: true, network: false, idempotent: false },
  fields,
  readingFields,
  run: (args, context) => handlers[args.action](context, args),
});

type Arguments = Partial<z.output<z.ZodObject<typeof fields>>>;

const handlers: Record<(typeof actions)[number], (context: ActionContext, args: Arguments) => Promise<JsonObject>> = {
  list,
  search,
  read: async ({ threads: store, replyTokens }, args) => read(await store.find(named(args)), args.cursor, replyTokens),
  sent: async ({ threads: store }, args) => sent(await store.find(named(args))),
  fork: async (context, args) => fork(context, await context.threads.find(named(args)), args.turn),
  delete: remove,
  delete_all: removeAll,
};

function named({ continuation_id }: Arguments): string {
  if (continuation_id !== undefined) return continuation_id;
  throw inputError('This action needs a thread.', {
    code: 'MISSING_PARAMETER',
    next: 'Send continuation_id: an id from action "list", or "last".',
    validationErrors: [{ field: 'continuation_id', error: 'missing', allowed: ['a thread id', 'last'] }],
  });
}

async function list({ threads: store }: ActionContext, { cursor, everywhere }: Arguments): Promise<JsonObject> {
  const after = cursor === undefined ? {} : pageBehind(cursor);
  if (!after) throw badCursor();
  const heads = await store.list({ everywhere: everywhere ?? false, limit: maxListed, ...after });
  const last = heads.length === maxListed ? heads.at(-1) : undefined;
  return { status: 'success', threads: heads.map(headOf), next_cursor: last && cursorBehind(last) };
}

async function search({ threads: store }: ActionContext, { query, everywhere }: Arguments): Promise<JsonObject> {
  const next = 'Send query with one or more words; all of them must occur.';
  if (!query) throw missingError('query', 'search requires "query".', next);
  const hits = await store.search({ text: query, everywhere: everywhere ?? false, limit: maxListed });
  const shown = hits.map(({ thread, seq, snippet }) => ({ ...headOf(thread), turn: seq, snippet }));
  return { status: 'success', hits: shown };
}

function headOf({ id, title, toolName: tool, workspace, seq, totals, parent, ...head }: ThreadHead): JsonObject {
  const { tokens, costUsd } = totals;
  return {
    ...{ continuation_id: id, title, tool, workspace, turns: seq, tokens },
    cost_usd: costUsd > 0 ? roundedUsd(costUsd) : undefined,
    updated_at: new Date(head.updatedAt).toISOString(),
    expires_at: new Date(head.expiresAt).toISOString(),
    forked_from: parent && { continuation_id: parent.thread, turn: parent.seq },
  };
}

/** Turns from the cursor on (`turn:character`), as much as one reply holds. */
async function read(thread: Thread, cursor: string | undefined, replyTokens: number): Promise<JsonObject> {
  const { estimateTokens, prefixWithin } = await import('../core/tokens.ts');
  const [, fromSeq, fromChar] = /^(\d{1,9}):(\d{1,9})$/.exec(cursor ?? '1:0') ?? [];
  if (fromSeq === undefined) throw badCursor();
  let room = Math.floor(replyTokens * pageShare);
  let skip = Number(fromChar);
  const page: JsonObject[] = [];
  let next: string | undefined;
  for (const turn of thread.turns.filter(candidate => candidate.seq >= Number(fromSeq))) {
    if (room <= turnTokens && page.length > 0) {
      next = `${turn.seq}:${skip}`;
      break;
    }
    const content = prefixWithin(turn.content.slice(skip), Math.max(turnTokens, room - turnTokens));
    const { seq, role, toolName: tool, status, timestamp } = turn;
    const partial = turn.modelMetadata?.finishReason === 'interrupted' || undefined;
    const at = new Date(timestamp).toISOString();
    const files = turn.files.map(({ path, form }) => ({ path: printablePath(path), form }));
    const facts = { turn: seq, role, tool, model: modelOf(turn), partial, at, status };
    page.push({ ...facts, content, files: files.length > 0 ? files : undefined });
    room -= estimateTokens(JSON.stringify(page.at(-1)));
    if (skip + content.length < turn.content.length) {
      next = `${turn.seq}:${skip + content.length}`;
      break;
    }
    skip = 0;
  }
  const facts = { ...headOf(thread), turns: thread.turns.length, note: lostBeginning(thread) };
  return { status: 'success', ...facts, transcript: page, next_cursor: next };
}

const modelOf = (turn: Turn | undefined): string | undefined =>
  turn?.modelName && `${turn.modelProvider}:${turn.modelName}`;

/** Every question of the thread with who got it and which files went along. */
function sent(thread: Thread): JsonObject {
  const answers = new Map(thread.turns.filter(turn => turn.role === 'assistant').map(turn => [turn.exchange, turn]));
  const rows = thread.turns
    .filter(turn => turn.role === 'user')
    .map((turn): JsonObject => {
      const answer = answers.get(turn.exchange);
      const { asked, usage, costUsd: cost_usd } = answer?.modelMetadata ?? {};
      const to = asked?.join(', ') ?? modelOf(answer) ?? (turn.status === 'done' ? 'nobody' : turn.status);
      const files = turn.files.map(({ path, form, lines }) => ({ path: printablePath(path), form, lines }));
      const facts = { turn: turn.seq, tool: turn.toolName, to, tokens: usage?.input, cost_usd };
      return { ...facts, files: files.length > 0 ? files : undefined };
    });
  return { status: 'success', continuation_id: thread.id, sent: rows };
}

async function fork({ threads: store }: ActionContext, thread: Thread, turn: number | undefined): Promise<JsonObject> {
  const ends = thread.turns.filter(candidate => endsExchange(thread, candidate)).map(({ seq }) => seq);
  const at = turn ?? ends.at(-1);
  if (at === undefined)
    throw inputError('This thread has no answer yet, so it cannot be forked.', {
      next: 'Resend the question with this continuation_id, or without one to start over.',
    });
  if (!ends.includes(at))
    throw inputError(`Cannot fork at turn ${at}: it does not end an exchange.`, {
      next: `Name a turn after which an exchange is complete, up to ${ends.at(-1) ?? 0}; action "read" shows them.`,
      validationErrors: [{ field: 'turn', error: 'not the end of an exchange' }],
    });
  const child = await store.fork(thread, at);
  const note = `Continue with this continuation_id; the original ${thread.id} is unchanged.`;
  return { status: 'success', ...headOf(child), note };
}

async function remove({ threads: store }: ActionContext, args: Arguments): Promise<JsonObject> {
  const thread = await store.head(named(args));
  if (args.confirm !== true) throw unconfirmed(`the thread "${thread.title}" with ${thread.seq} turns`);
  await store.remove(thread);
  return { status: 'success', deleted: [thread.id] };
}

async function removeAll({ threads: store }: ActionContext, { confirm }: Arguments): Promise<JsonObject> {
  if (confirm !== true) throw unconfirmed('all threads of this project');
  const deleted: string[] = [];
  for (;;) {
    const heads = await store.list({ everywhere: false, limit: maxListed });
    const before = deleted.length;
    for (const head of heads) if (await store.remove(head)) deleted.push(head.id);
    // A page of which nothing went was removed by somebody else meanwhile, or never will be.
    if (heads.length === 0 || deleted.length === before) return { status: 'success', deleted };
  }
}

const badCursor = (): Error =>
  inputError('Invalid cursor.', {
    next: 'Send next_cursor exactly as returned, or omit it to start from the first page.',
    validationErrors: [{ field: 'cursor', error: 'malformed' }],
  });
