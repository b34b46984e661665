import { createReadStream, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { inputError } from '../../core/errors.ts';
import { defineCommand, flag, isOn } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';

const reportEvery = 100;

export const importThread = defineCommand({
  name: 'import',
  group: 'Threads',
  summary: 'Import a thread from a JSONL export',
  usage: '<file>',
  flags: [flag('as-new', 'Import under a new ID, keeping any existing thread')],
  examples: [
    ['polylogue import talk.jsonl', 'Keep its ID'],
    ['polylogue import talk.jsonl --as-new', 'Import it as a copy with a new ID'],
    ['polylogue import - --as-new < talk.jsonl', 'The same from standard input'],
  ],
  async run(context) {
    const { out, environment, args } = context;
    const piped = args[0] === '-' ? await buffer(process.stdin) : undefined;
    const file = resolve(environment.cwd, args[0] ?? '');
    if (!piped && !statSync(file, { throwIfNoEntry: false })?.isFile())
      throw inputError(`${file} is not a file.`, { next: 'Name a file that "polylogue export" wrote.' });
    return openProduct(context, async ({ product, place, signal }) => {
      const { thread, turns, blobs, missing, masked } = await product.transfer.import({
        open: () => (piped ? Readable.from([piped]) : createReadStream(file)),
        place,
        asNew: isOn(context.flags, 'as-new'),
        signal,
        onProgress: (stage, records) => {
          if (records % reportEvery === 0) out.status(`${stage}: ${records} records`);
        },
      });
      out.status('');
      const found = { turns, texts: blobs, missing_texts: missing, masked: { ...masked } };
      out.document({ status: 'success', continuation_id: thread.id, title: thread.title, ...found });
      const { private: isPrivate, store } = context.config.values.app;
      if (isPrivate || store === 'memory')
        out.warn('Threads are in memory alone: it is gone now that this command ends.');
      out.line(`${thread.id}  ${turns} turns`);
      if (missing > 0) out.remark(`${missing} texts of files were not in it.`);
      const secrets = Object.values(masked).reduce((sum, count) => sum + count, 0);
      if (secrets > 0) out.remark(`${secrets} secrets in it were masked.`);
    });
  },
});
