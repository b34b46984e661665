import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const leftOut = /(?:^|\/)(?:\.git|node_modules)$|^(?:dist|coverage|site|release)$/;

/** The files below `root`, as sorted paths relative to it with `/`; what is built or installed is left out. */
export function walk(root: string, folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(entry => {
      const path = folder ? `${folder}/${entry.name}` : entry.name;
      if (entry.isDirectory()) return leftOut.test(path) ? [] : walk(root, path);
      return entry.isFile() ? [path] : [];
    });
}
