import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { clis } from '../../../src/providers/external-cli/clis/index.gen.ts';
import { clink } from '../../../src/tools/clink.ts';
import { testProduct } from '../../support/product.ts';
import { geminiAnswers, standIn } from '../../support/stand-in-cli.ts';
import { tempProject } from '../../support/temp-project.ts';

interface Setup {
  installed?: readonly string[];
  env?: Record<string, string>;
  childEnv?: Record<string, string>;
}

async function start({ installed = [], env = {}, childEnv = {} }: Setup) {
  const [project, program] = await Promise.all([tempProject(), standIn(...installed)]);
  // Nothing of this machine is found.
  const PATH = join(program.env.HOME ?? '', 'bin');
  const polylogue = await testProduct({
    root: project.root,
    env: { POLYLOGUE_TOOLSETS: '', ...env },
    childEnv: { ...program.env, PATH, ...childEnv },
  });
  onTestFinished(async () => {
    await polylogue.close();
    await Promise.all([program.dispose(), project.dispose()]);
  });
  const listed = polylogue.product.host.list();
  return { polylogue, program, listed, names: listed.map(({ name }) => name) };
}

describe('clink', () => {
  it('knows the programs of all CLIs that are built in', () => {
    expect([...(clink.programs ?? [])].sort()).toEqual(clis.map(({ name }) => name).sort());
  });

  it.each(['codex', 'gemini', 'claude', 'agy', 'opencode'])('is offered where %s is installed', async name => {
    expect((await start({ installed: [name] })).names).toContain('clink');
  });

  it('is not offered where none is, and the list keeps within its limit', async () => {
    const { names, listed } = await start({});
    expect(names).not.toContain('clink');
    expect(Buffer.byteLength(JSON.stringify(listed))).toBeLessThanOrEqual(17_000);
    expect((await start({ installed: ['codex-helper', 'claude.txt'] })).names).toEqual(names);
  });

  it.each([
    ['toolsets were chosen', { env: { POLYLOGUE_TOOLSETS: 'core,code,files' } }],
    ['tools were chosen', { env: { POLYLOGUE_TOOLS: 'chat,debug' } }],
    ['it is left out', { env: { DISABLED_TOOLS: 'clink' } }],
    ['a CLI started this server, which it would only ask in a circle', { childEnv: { POLYLOGUE_CLI_RUN: 'x' } }],
  ])('is not offered where %s', async (_, setup) => {
    expect((await start({ installed: ['gemini', 'codex'], ...setup })).names).not.toContain('clink');
  });

  it('is offered once where its toolset was chosen, installed or not', async () => {
    for (const installed of [[], ['gemini']]) {
      const { names } = await start({ installed, env: { POLYLOGUE_TOOLSETS: 'core,agent' } });
      expect(names.filter(name => name === 'clink')).toEqual(['clink']);
    }
  });

  it('is not offered for a program of the project, nor for one that can not be run', async () => {
    const project = await tempProject({ 'bin/codex': '#!/bin/sh\n' });
    const elsewhere = await tempProject();
    onTestFinished(async () => void (await Promise.all([project.dispose(), elsewhere.dispose()])));
    await chmod(project.path('bin/codex'), 0o755);
    await mkdir(elsewhere.path('bin'));
    await writeFile(elsewhere.path('bin/gemini'), '#!/bin/sh\n', { mode: 0o644 });
    const PATH = [project.path('bin'), elsewhere.path('bin'), 'bin'].join(':');
    const polylogue = await testProduct({
      root: project.root,
      env: { POLYLOGUE_TOOLSETS: '' },
      childEnv: { PATH, HOME: elsewhere.root },
    });
    onTestFinished(() => polylogue.close());
    expect(polylogue.product.host.list().map(({ name }) => name)).not.toContain('clink');
  });

  it('works as it is offered', async () => {
    const { polylogue, program } = await start({ installed: ['gemini'] });
    program.script(geminiAnswers('Alpha is one.'));
    const reply = await polylogue.call('clink', { prompt: 'What is alpha?', cli_name: 'gemini' });
    expect(reply).toMatchObject({ status: 'continuation_available', content: 'Alpha is one.' });
  });
});
