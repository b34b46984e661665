import { relative } from 'node:path';
import { inputError } from '../../core/errors.ts';
import { printablePath, safeCut } from '../../core/text.ts';
import { defineCommand, flag, numberFlag } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';
import { refreshedIndex } from './index-files.ts';

const usual = 10;
const maxResults = 50;
const linesShown = 3;

export const search = defineCommand({
  name: 'search',
  group: 'Search',
  summary: 'Search the project for code and text about a topic',
  usage: '[text...]',
  flags: [flag('limit <number>', `Maximum number of places, up to ${maxResults} (default: ${usual})`)],
  examples: [
    ['polylogue search where are secrets masked', 'Ask in plain words'],
    ['polylogue search createSandbox --limit 3 --json', 'Search for a name; print JSON'],
  ],
  async run(context) {
    const { args, flags, out } = context;
    const question = args.join(' ').trim();
    if (question === '')
      throw inputError('There is nothing to look for.', { next: 'As in: polylogue search where are secrets masked' });
    const limit = numberFlag(flags, 'limit', { min: 1, max: maxResults }) ?? usual;
    return openProduct(context, async ({ product, signal }) => {
      const { index } = await refreshedIndex(context, product, signal);
      const hits = await index.search(question, limit, signal);
      const warning = index.warning();
      out.document({ status: 'success', root: product.root, warning, hits: hits.map(hit => ({ ...hit })) });
      if (warning !== undefined) out.warn(warning);
      if (hits.length === 0) out.line('No matches in this project.');
      for (const { path, from, to, name, text } of hits) {
        const place = `${printablePath(relative(product.root, path))}:${from}-${to}`;
        out.line(out.style('cyan', place), '  ', out.style('dim', printablePath(name)));
        const lines = text.split('\n').filter(line => line.trim() !== '');
        for (const line of lines.slice(0, linesShown)) out.line(`  ${safeCut(line.replaceAll('\t', '  '), 120)}`);
      }
    });
  },
});
