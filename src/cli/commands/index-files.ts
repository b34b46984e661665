import { relative } from 'node:path';
import type { Product } from '../../app/compose-product.ts';
import { printablePath } from '../../core/text.ts';
import { type CommandContext, defineCommand, flag, isOn } from '../command/command.ts';
import { openProduct } from '../command/open-product.ts';

const skipsShown = 20;

/** The index of the project as its files are now, with what was done for that. */
export async function refreshedIndex({ out }: CommandContext, product: Product, signal: AbortSignal, rebuild = false) {
  const index = await product.searchIndex(product.root);
  const onProgress = (stage: string, done: number, total: number) => out.status(`${stage} ${done} of ${total}`);
  const report = await index.refresh({ signal, rebuild, onProgress });
  out.status('');
  return { index, report };
}

export const indexFiles = defineCommand({
  name: 'index',
  group: 'Search',
  summary: "Update the project's search index (changed files only)",
  flags: [flag('rebuild', 'Rebuild the index from scratch')],
  examples: [
    ['polylogue index', 'Searches also do this automatically'],
    ['polylogue index --rebuild', 'Start over'],
  ],
  async run(context) {
    const { out, flags } = context;
    return openProduct(context, async ({ product, signal }) => {
      const { index, report } = await refreshedIndex(context, product, signal, isOn(flags, 'rebuild'));
      const { files, indexed, removed, chunks, vectors, warning, skipped } = report;
      const shown = skipped.slice(0, skipsShown).map(skip => ({ ...skip }));
      const counts = { files, indexed, removed, chunks, vectors, warning, skipped: skipped.length };
      out.document({ status: 'success', root: product.root, roots: index.roots, ...counts, skips: shown });
      out.line(`${index.roots.join(', ')}: ${files} files, ${indexed} of them read now, ${removed} removed`);
      if (vectors !== undefined) out.line(`${vectors} of ${chunks} places have vectors`);
      if (warning !== undefined) out.warn(warning);
      for (const { path, reason } of shown)
        out.remark(`left out: ${printablePath(relative(product.root, path))}: ${reason}`);
      if (skipped.length > skipsShown) out.remark(`and ${skipped.length - skipsShown} more`);
    });
  },
});
