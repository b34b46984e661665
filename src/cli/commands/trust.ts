import { resolve } from 'node:path';
import { trustDirectory } from '../../config/settings-files.ts';
import { defineCommand } from '../command/command.ts';

export const trust = defineCommand({
  name: 'trust',
  group: 'Setup',
  summary: "Trust a directory's .env to set options (not URLs or roots)",
  usage: '[directory]',
  examples: [
    ['polylogue trust', 'Trust the working directory'],
    ['polylogue trust ~/project', 'Trust another directory'],
  ],
  async run({ args, config, environment, out }) {
    const real = trustDirectory(config.home, resolve(environment.cwd, args[0] ?? '.'));
    out.document({ status: 'success', trusted: real });
    out.line(`${real} is trusted: its .env is read when Polylogue starts there.`);
  },
});
