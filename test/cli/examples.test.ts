import { execFile } from 'node:child_process';
import { delimiter } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { commands } from '../../src/cli/commands/index.gen.ts';
import { pdfFile } from '../support/office-files.ts';
import { tempProject } from '../support/temp-project.ts';
import { main } from './run-program.ts';

const files = {
  'src/run.ts': 'export const run = (): number => 1;\n',
  'src/parse.ts': 'export const parse = JSON.parse;\n',
  'crash.log': 'Error: no\n    at run (src/run.ts:1:1)\n',
  'question.md': 'What could go wrong?\n',
  'contract.pdf': pdfFile('A contract.'),
  'package.json': '{ "scripts": { "test": "echo \\"Error: no at src/run.ts:1:1\\"" } }\n',
  'bin/polylogue': `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`,
};
const homeFiles = { 'project/README.md': '', '.config/fish/completions/x.fish': '' };

/** A command that fails, and says why in these words. */
const fails = (words: string, input = '') => `if echo '${input}' | $& 2>log; then false; else grep '${words}' log; fi`;

/** What runs in the place of an example, and why. */
const instead: readonly (readonly [RegExp, string])[] = [
  [/\bID\b/g, '"$ID"'],
  // The built-in models stand for those that need a key.
  [/(--model) \S+/, '$1 echo-east'],
  [/(--models) \S+/, '$1 offline-east:echo-east,offline-west:echo-west'],
  [/--for o3 --against opus --neutral flash/, '--for echo-east --against echo-west'],
  // They echo, and call no tools.
  [/^polylogue agent .*$/, fails('No allowed model is known to call tools')],
  // A free port of this machine; it serves until it is told to stop.
  [/POLYLOGUE_TOKEN=…/, 'POLYLOGUE_TOKEN=a-token-of-the-examples'],
  [/--host 0\.0\.0\.0/, '--host 127.0.0.1'],
  [
    /^.*polylogue serve.*$/,
    'rm -f log; $& --port 0 >log 2>&1 & until grep -qs listening log || ! kill -0 $!; do sleep 0.05; done; cat log; kill $!; wait $!',
  ],
  // Nobody answers there.
  [/--url \S+$/, '--url http://127.0.0.1:9'],
  [/^polylogue connect --url .*$/, fails('cannot be reached', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}')],
  [/^polylogue models refresh$/, fails('models.dev failed')],
  // The daemon that it starts would outlive the test; test/e2e/connect.test.ts has it.
  [/^polylogue connect$/, '$& --help'],
  [/^eval "\$\((.* zsh)\)"$/, '$1'],
  [/\| less$/, '| cat'],
  [/^polylogue diagnose .*--apply$/, fails('There is no patch to apply')],
  // No daemon runs: it ends with 1.
  [/^polylogue status.*$/, '$& || [ $? -eq 1 ]'],
];

/** What the examples of a command need to be there. */
const before: Partial<Record<string, string>> = {
  init: 'export OPENAI_API_KEY=a-key',
  import: 'polylogue export last --output talk.jsonl; polylogue threads delete "$ID" --yes',
  replay: 'ID=$(polylogue replay --json | grep -oE \'"exchange": "[^"]+\' | head -1 | cut -d\'"\' -f4)',
  threads: 'polylogue ask --continue last "And then?"',
};

it.concurrent.each(commands.map(({ name, examples }) => [name, examples] as const))(
  'the examples of "polylogue %s --help" work',
  async (name, examples) => {
    const [project, home] = await Promise.all([tempProject(files), tempProject(homeFiles)]);
    const lines = examples.map(([line]) => instead.reduce((text, [from, to]) => text.replace(from, to), line));
    const steps = [before[name] ?? '', ...lines.map(line => `${line}\necho "did it"`)];
    const needsThread = steps.some(step => /\$ID|\blast\b|replay|usage|threads/.test(step));
    const script = [
      'set -eu -o pipefail; exec </dev/null',
      'chmod +x bin/polylogue; git init -q; git add src; echo "// more" >> src/run.ts',
      needsThread ? 'ID=$(polylogue ask "Hello?" --json | grep -oE "[0-9a-f]{8}-[0-9a-f-]{27}" | head -1)' : '',
      ...steps,
    ];
    const env = {
      HOME: home.root,
      PATH: [project.path('bin'), process.env.PATH].join(delimiter),
      OFFLINE: 'on',
      COMMS_LOG: 'on',
      MODELS_DEV_URL: 'http://127.0.0.1:9',
    };
    try {
      const { stdout } = await promisify(execFile)('bash', ['-c', script.join('\n')], { cwd: project.root, env });
      expect(stdout.split('\n').filter(line => line === 'did it')).toHaveLength(examples.length);
    } finally {
      await Promise.all([project.dispose(), home.dispose()]);
    }
  },
);
