import { stat, writeFile } from 'node:fs/promises';
import { inputError } from '../../core/errors.ts';
import { type JsonObject, recordsIn } from '../../core/json.ts';
import { counted } from '../../core/text.ts';
import { type CommandContext, defineCommand, flag, isOn, noneOf, numberFlag, textFlag } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';
import type { Output } from '../command/output.ts';
import { costText, runTool } from '../command/run-tool.ts';
import { writtenFile } from '../command/written-file.ts';

interface Action {
  /** Those that go with it, beside those that all commands take. */
  flags?: readonly string[];
  show?(out: Output, document: JsonObject): void;
}

const actions: Readonly<Record<string, Action>> = {
  list: { flags: ['everywhere', 'cursor'], show: (out, { threads }) => showHeads(out, 'threads', recordsIn(threads)) },
  search: { flags: ['everywhere'], show: (out, { hits }) => showHeads(out, 'matches', recordsIn(hits)) },
  read: { flags: ['cursor'], show: (out, { transcript }) => showTurns(out, recordsIn(transcript)) },
  sent: { show: (out, { sent }) => showSent(out, recordsIn(sent)) },
  fork: { flags: ['turn'], show: (out, { continuation_id: id, title }) => out.line(`${String(id)}  ${String(title)}`) },
  delete: { flags: ['yes'], show: (out, { deleted }) => out.line(`deleted ${String(deleted)}`) },
  prune: { flags: ['older-than', 'dry-run'] },
  backup: { flags: ['overwrite'] },
};

const hourMs = 3_600_000;
const units: Readonly<Record<string, number>> = { h: hourMs, d: 24 * hourMs, w: 7 * 24 * hourMs };

export const threads = defineCommand({
  name: 'threads',
  group: 'Threads',
  summary: 'List, search, read, fork, delete, prune or back up threads',
  usage: '[action] [rest...]',
  words: Object.keys(actions),
  flags: [
    flag('everywhere', 'list, search: include all projects'),
    flag('cursor <cursor>', 'list, read: continue after this cursor'),
    flag('turn <number>', 'fork: last turn to keep'),
    flag('yes', 'delete: confirm the deletion'),
    flag('older-than <age>', 'prune: also threads unused for this long, such as 30d (h, d, w)'),
    flag('dry-run', 'prune: show what would be deleted'),
    flag('overwrite', 'backup: replace an existing file'),
  ],
  examples: [
    ['polylogue threads', "List this project's threads, newest first"],
    ['polylogue threads search race condition', 'Find turns that contain all these words'],
    ['polylogue threads read last', 'Read the newest thread in full'],
    ['polylogue threads sent last', 'Show which model received which files'],
    ['polylogue threads fork ID --turn 4', 'Continue separately from turn 4'],
    ['polylogue threads delete ID --yes', 'Delete a thread permanently'],
    ['polylogue threads prune --older-than 30d --dry-run', 'Show what would be deleted in all projects'],
    ['polylogue threads backup FILE', 'Copy the threads of all projects to a file'],
  ],
  async run(context) {
    const { out } = context;
    refuseStray(context);
    if (context.args[0] === 'prune') return pruneThreads(context);
    if (context.args[0] === 'backup') return backUpThreads(context);
    const args = argumentsOf(context);
    const print = (document: JsonObject) => {
      const { next_cursor: cursor } = document;
      actions[args.action]?.show?.(out, document);
      if (typeof cursor === 'string') out.line(out.style('dim', `more: --cursor ${cursor}`));
    };
    return runTool(context, 'threads', args, { print });
  },
});

/** Whoever adds --dry-run to a delete, or names an age without its flag, wants something else than what would be done. */
function refuseStray({ args: [action = 'list', ...rest], flags }: CommandContext): void {
  const known = Object.hasOwn(actions, action) && ['json', ...(actions[action]?.flags ?? [])];
  if (!known) return;
  const stray = Object.keys(flags).find(name => flags[name] !== undefined && !known.includes(name));
  if (stray !== undefined) {
    const those = Object.keys(actions).filter(name => actions[name]?.flags?.includes(stray));
    throw inputError(`"threads ${action}" takes no --${stray}.`, { next: `It goes with ${those.join(' and ')}.` });
  }
  if (rest.length > 0 && (action === 'list' || action === 'prune')) {
    const next =
      action === 'list' ? 'To look for words: polylogue threads search WORDS.' : 'An age goes with --older-than 30d.';
    throw inputError(`"threads ${action}" takes no "${rest.join(' ')}".`, { next });
  }
}

function argumentsOf({ args, flags }: CommandContext) {
  const [action = 'list', ...rest] = args;
  if (!Object.hasOwn(actions, action)) throw noneOf('action', action, Object.keys(actions));
  const onThread = action !== 'list' && action !== 'search';
  if (onThread && rest.length !== 1)
    throw inputError(`"threads ${action}" needs a thread ID.`, {
      next: `Usage: polylogue threads ${action} ID. Run "polylogue threads" to list IDs.`,
    });
  return {
    action,
    continuation_id: onThread ? rest[0] : undefined,
    query: action === 'search' ? rest.join(' ') : undefined,
    everywhere: isOn(flags, 'everywhere') || undefined,
    cursor: textFlag(flags, 'cursor'),
    turn: numberFlag(flags, 'turn', { min: 1 }),
    confirm: isOn(flags, 'yes') || undefined,
  };
}

function showHeads(out: Output, what: string, heads: readonly Record<string, unknown>[]): void {
  if (heads.length === 0) out.line(`No ${what} in this project. Add --everywhere to search all projects.`);
  for (const head of heads) {
    const facts = `${String(head.updated_at).slice(0, 16).replace('T', ' ')}  ${counted(Number(head.turns), 'turn')}  ${String(head.tool)}${costText(head, '  ')}`;
    out.line(out.style('cyan', String(head.continuation_id)), '  ', out.style('dim', facts));
    out.line(`  ${String(head.snippet ?? head.title)}`);
  }
}

function showTurns(out: Output, turns: readonly Record<string, unknown>[]): void {
  for (const turn of turns) {
    const who = turn.role === 'assistant' ? String(turn.model ?? turn.tool) : 'you';
    const status = turn.status === 'done' ? '' : `, ${String(turn.status)}`;
    out.line(out.style('bold', `${String(turn.turn)}. ${who} (${String(turn.tool)}${status})`));
    out.line(String(turn.content));
    for (const file of recordsIn(turn.files))
      out.line(out.style('dim', `  ${String(file.form)}: ${String(file.path)}`));
    out.line('');
  }
}

/** What stands where a model would: the state of a question that none has answered. */
const unanswered: ReadonlySet<string> = new Set(['failed', 'pending']);

function showSent(out: Output, rows: readonly Record<string, unknown>[]): void {
  for (const row of rows) {
    const tokens = row.tokens === undefined ? '' : `, ${String(row.tokens)} tokens`;
    const to = unanswered.has(String(row.to)) ? `, ${String(row.to)}` : ` to ${String(row.to)}`;
    out.line(`${String(row.turn)}. ${String(row.tool)}${to}${tokens}${costText(row)}`);
    for (const file of recordsIn(row.files))
      out.line(`   ${String(file.form)}: ${String(file.path)} (${String(file.lines)} lines)`);
  }
}

const sizeText = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

/** Removes threads that expired, and those unused for long where that is asked for; tells what went. */
async function pruneThreads(context: CommandContext): Promise<number> {
  const { out, flags } = context;
  const unusedFor = ageOf(textFlag(flags, 'older-than'));
  const dryRun = isOn(flags, 'dry-run');
  return openProduct(context, async ({ product, place }) => {
    const { threads, blobs, bytes } = await product.transfer.prune({ owner: place.owner, unusedFor, dryRun });
    out.document({ status: 'success', dry_run: dryRun, threads, blobs, bytes });
    out.line(`${dryRun ? 'would remove' : 'removed'} ${threads} threads, ${blobs} texts, ${sizeText(bytes)}`);
  });
}

/** Copies the store as it is at this moment, whatever other processes write meanwhile. */
async function backUpThreads(context: CommandContext): Promise<number> {
  const { out, args } = context;
  const [, file, stray] = args;
  if (file === undefined || stray !== undefined)
    throw inputError('"threads backup" needs one file.', { next: 'Usage: polylogue threads backup FILE.' });
  return openProduct(context, async ({ product: { store } }) => {
    const backUp = store.backUp?.bind(store);
    if (!backUp)
      throw inputError('Threads are not stored in a file on this machine.', {
        next: 'Back up the Redis server itself.',
      });
    const path = await writtenFile(context, file, async draft => {
      await writeFile(draft, '', { flag: 'wx', mode: 0o600 });
      await backUp(draft);
    });
    const bytes = (await stat(path)).size;
    out.document({ status: 'success', file: path, bytes });
    out.line(`The threads of all projects are in ${path} (${sizeText(bytes)}).`);
  });
}

function ageOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, count, unit = ''] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  const ms = Number(count) * (units[unit] ?? Number.NaN);
  if (ms > 0) return ms;
  throw inputError(`Invalid age "${text}".`, {
    next: 'Give --older-than a number above 0 with h, d or w, such as 30d.',
  });
}
