import { execFile, execFileSync } from 'node:child_process';
import { readFile, realpath } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { judgeCommand } from '../../src/engine/modes/agent/local-tools/command-policy.ts';
import { createSandbox } from '../../src/workspace/sandbox.ts';
import { httpMount } from '../support/conformance/http-mount.ts';
import { testProduct, vendorEnv } from '../support/product.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { startOpenAi } from '../support/vendors/start-open-ai.ts';

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const page = await readFile(at('docs/agent.md'), 'utf8');
const blockOf = (language: string) =>
  new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)?.[1] ?? '';

/** Commands that the page says run unasked. */
const unasked = /^\| program \|[\s\S]*?\n\n/m.exec(page)?.[0].matchAll(/`([^`]+)`/g) ?? [];
const commands = [...unasked].map(([, line = '']) => line).filter(line => line.includes(' ') && !/ run$/.test(line));

const broken = 'export const add = (a, b) => a - b;\n';
let project: TempProject;
let home: TempProject;
beforeAll(async () => {
  home = await tempProject();
  project = await tempProject({
    'package.json': '{"name": "sum", "type": "module", "scripts": {"test": "node --test"}}\n',
    'sum.js': broken,
    'sum.test.js': `import { strictEqual } from 'node:assert';\nimport test from 'node:test';\nimport { add } from './sum.js';\ntest('adds', () => strictEqual(add(2, 3), 5));\n`,
    ...Object.fromEntries(
      ['pytest.ini', 'go.mod', 'Cargo.toml', 'Makefile', 'tsconfig.json'].map(name => [name, '{}']),
    ),
    ...Object.fromEntries(['test/a.test.js', 'tests/test_a.py', 'test/x'].map(name => [name, ''])),
    ...Object.fromEntries(['vitest', 'jest', 'tsc'].map(name => [`node_modules/.bin/${name}`, ''])),
  });
  execFileSync('git', ['init', '-q'], { cwd: project.root });
});
afterAll(() => Promise.all([project.dispose(), home.dispose()]));

describe('docs/agent.md', () => {
  it('names commands that really run unasked', async () => {
    expect(commands.length).toBeGreaterThan(15);
    const root = await realpath(project.root);
    const sandbox = createSandbox({ roots: [root], allowSecrets: false });
    const verdicts = commands.map(async line => {
      const verdict = await judgeCommand({
        argv: line.split(' '),
        cwd: root,
        project: root,
        sandbox,
        entries: undefined,
      });
      return { line, ...verdict };
    });
    expect((await Promise.all(verdicts)).filter(verdict => 'unknown' in verdict)).toEqual([]);
  });

  it('has commands and servers with which a task is done', async () => {
    const vendor = await startOpenAi();
    const wiki = await testProduct({ root: project.root });
    const mount = await httpMount(wiki.product.host, wiki.product.root);
    const fixture = { command: process.execPath, args: [at('test/fixtures/mcp-server.ts')] };
    const { mcpServers } = JSON.parse(blockOf('json'));
    const { tickets } = mcpServers;
    const servers = {
      tickets: { ...tickets, ...fixture },
      wiki: { ...mcpServers.wiki, url: mount.url, tools: ['version'] },
    };
    await home.write('servers.json', JSON.stringify({ mcpServers: servers }));
    const patch = `--- a/sum.js\n+++ b/sum.js\n@@ -1 +1 @@\n-${broken}+${broken.replace(' - ', ' + ')}`;
    vendor.script(
      { calls: [{ name: 'tickets__weather', args: { town: 'Bern' } }] },
      { calls: [{ name: 'apply_patch', args: { patch } }] },
      { calls: [{ name: 'run_command', args: { argv: ['npm', 'test'] } }] },
      {
        answer: ({ messages }) =>
          messages.some(({ text }) => /^Exit code: 0/m.test(text)) ? 'It passes.' : 'It fails.',
      },
      { answer: 'A minus became a plus.' },
    );
    await home.write('bin/polylogue', `#!/bin/sh\nexec "${process.execPath}" "${at('dist/main.js')}" "$@"\n`);
    const env = {
      ...vendorEnv({ openai: vendor.url }),
      ...{ HOME: home.root, POLYLOGUE_HOME: home.path('.polylogue'), DEFAULT_MODEL: 'gpt-5-mini' },
      ...{ AGENT_APPROVE: 'all', POLYLOGUE_MCP_SERVERS: home.path('servers.json') },
      PATH: `${home.path('bin')}:${process.env.PATH}`,
    };
    const script = `set -eu\nexec </dev/null\nchmod +x "$HOME/bin/polylogue"\n${blockOf('sh')}`;
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: project.root, env });
    expect(stdout).toMatch(/It passes\.[\s\S]*A minus became a plus\./);
    expect(await readFile(project.path('sum.js'), 'utf8')).toBe(broken.replace(' - ', ' + '));
    const [first, second] = vendor.requests.map(({ body }) => JSON.stringify(body));
    expect(first).toContain('wiki__version');
    expect(first).not.toContain('wiki__chat');
    expect(second).toContain('Bern: rain');
    expect(
      vendor.requests
        .at(-1)
        ?.messages.map(({ text }) => text)
        .join('\n'),
    ).toContain('It passes.');
    expect(vendor.violations).toEqual([]);
    await Promise.all([mount.close(), vendor.close()]);
    await wiki.close();
  });
});
