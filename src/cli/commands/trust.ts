import { resolve } from 'node:path';
import { trustDirectory } from '../../config/trust.ts';
import { defineCommand } from '../command.ts';

export const trust = defineCommand({
  name: 'trust',
  summary: 'let the .env of a directory (this one unless told) set options, but no addresses, roots, commands or paths',
  usage: '[directory]',
  async run({ args, config, around, print }) {
    const real = trustDirectory(config.home, resolve(around.cwd, args[0] ?? '.'));
    print(`${real} is trusted: its .env is read when Polylogue starts there.`);
    return 0;
  },
});
