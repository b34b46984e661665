import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { AppError, inputError, isAppError } from '../../core/errors.ts';
import { type CommandContext, defineCommand, isOn, textFlag } from '../command/command.ts';
import { attemptWithProduct } from '../command/open-product.ts';

const formats = ['jsonl', 'md', 'html'] as const;
type Format = (typeof formats)[number];

export const exportThread = defineCommand({
  name: 'export',
  group: 'Threads and search',
  summary: 'Export a thread to a file',
  usage: '<id>',
  words: ['last'],
  flags: [
    {
      name: 'format',
      value: 'word',
      choices: formats,
      doc: 'Output format; only jsonl can be imported (default: by file extension)',
    },
    { name: 'output', value: 'file', doc: 'Output file (default: stdout)' },
    { name: 'overwrite', doc: 'Replace an existing file' },
  ],
  examples: [
    ['polylogue export last --output talk.html', 'the newest conversation, for a browser'],
    ['polylogue export ID > talk.jsonl', 'to be imported on another machine'],
    ['polylogue export ID --format md | less', 'to read here'],
  ],
  async run(context) {
    const [id = ''] = context.args;
    const file = textFlag(context.flags, 'output');
    const format = formatOf(context, file);
    return attemptWithProduct(context, async ({ product, place, signal }) => {
      const { thread, pieces } = await product.transfer.export(id, place, format);
      const facts = { status: 'success', continuation_id: thread.id, format, turns: thread.turns.length };
      const watched = watch(context, pieces, signal);
      if (file !== undefined) {
        const manner = { overwrite: isOn(context.flags, 'overwrite'), unique: context.environment.random.uuid() };
        const path = await write(resolve(context.environment.cwd, file), watched, manner);
        if (context.out.json) context.out.document({ ...facts, file: path });
        else context.out.remark(`${thread.turns.length} turns are in ${path}.`);
      } else if (context.out.json) {
        context.out.document({ ...facts, content: await joined(watched) });
      } else await context.out.pieces(watched);
      return 0;
    });
  },
});

/** As it was asked for, else by the ending of the file. */
function formatOf({ flags }: CommandContext, file: string | undefined): Format {
  const wanted = textFlag(flags, 'format') ?? file?.split('.').at(-1);
  return formats.find(format => format === wanted) ?? 'jsonl';
}

/** Says on the way how far it is, and ends when the user wants no more. */
async function* watch(
  { out }: CommandContext,
  pieces: AsyncIterable<string>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let written = 0;
  for await (const piece of pieces) {
    signal.throwIfAborted();
    yield piece;
    written += piece.length;
    if (written > 1e6) out.status(`exporting: ${(written / 1e6).toFixed(0)} MB`);
  }
  out.status('');
}

async function joined(pieces: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += piece;
  return text;
}

interface Manner {
  overwrite: boolean;
  /** Tells drafts apart. */
  unique: string;
}

/** Beside its place first, and for the user alone: nobody sees half of it. */
async function write(path: string, pieces: AsyncIterable<string>, { overwrite, unique }: Manner): Promise<string> {
  const draft = join(dirname(path), `.polylogue-${unique}.part`);
  try {
    if (!overwrite && (await exists(path))) throw existing(path);
    // Never what is there already: a link that somebody else put there would be followed.
    const handle = await open(draft, 'wx', 0o600);
    try {
      await handle.writeFile(pieces);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, path);
    return path;
  } catch (error) {
    await rm(draft, { force: true });
    throw isAppError(error) ? error : unwritable(path, error);
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    // What can't be looked at is told of when it is written.
    () => false,
  );
}

function existing(path: string): AppError {
  return inputError(`${path} already exists.`, { class: 'exists', next: 'Choose another file, or add --overwrite.' });
}

function unwritable(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error;
  return new AppError('storage', `${path} can't be written (${String(error.code)}).`, {
    code: 'STORAGE',
    class: error.code === 'ENOSPC' ? 'storage_full' : 'unavailable',
    next: 'Name a file in a directory that is there and can be written.',
  });
}
