import { writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { exportForms } from '../../core/thread.ts';
import { type CommandContext, defineCommand, flag, textFlag } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';
import { writtenFile } from '../command/written-file.ts';

export const exportThread = defineCommand({
  name: 'export',
  group: 'Threads',
  summary: 'Export a thread to a file',
  usage: '<id>',
  words: ['last'],
  flags: [
    flag('format <word>', 'Output format; only jsonl can be imported (default: by file extension)', {
      choices: exportForms,
    }),
    flag('output <file>', 'Output file (default: stdout)'),
    flag('overwrite', 'Replace an existing file'),
  ],
  examples: [
    ['polylogue export last --output talk.html', 'Write the newest thread for a browser'],
    ['polylogue export ID > talk.jsonl', 'Write a file that "polylogue import" reads'],
    ['polylogue export ID --format md | less', 'Read it in the terminal'],
  ],
  async run(context) {
    const [id = ''] = context.args;
    const file = textFlag(context.flags, 'output');
    // As it was asked for, else by the ending of the file.
    const wanted = textFlag(context.flags, 'format') ?? file?.split('.').at(-1);
    const format = exportForms.find(form => form === wanted) ?? 'jsonl';
    return openProduct(context, async ({ product, place, signal }) => {
      const { thread, pieces } = await product.transfer.export(id, place, format);
      const facts = { status: 'success', continuation_id: thread.id, format, turns: thread.turns.length };
      const watched = watch(context, pieces, signal);
      if (file !== undefined) {
        const path = await writtenFile(context, file, draft =>
          // Never what is there already: a link that somebody else put there would be followed.
          writeFile(draft, watched, { flag: 'wx', mode: 0o600, flush: true }),
        );
        if (context.out.json) context.out.document({ ...facts, file: path });
        else context.out.remark(`${thread.turns.length} turns are in ${path}.`);
      } else if (context.out.json) {
        context.out.document({ ...facts, content: await text(watched) });
      } else await context.out.pieces(watched);
    });
  },
});

/** Says on the way how far it is, and ends when the user wants no more. */
async function* watch({ out }: CommandContext, pieces: AsyncIterable<string>, signal: AbortSignal) {
  let written = 0;
  for await (const piece of pieces) {
    signal.throwIfAborted();
    yield piece;
    written += piece.length;
    if (written > 1e6) out.status(`exporting: ${(written / 1e6).toFixed(0)} MB`);
  }
  out.status('');
}
