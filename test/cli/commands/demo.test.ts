import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TempProject, tempProject } from '../../support/temp-project.ts';
import { runProgram } from '../run-program.ts';

let project: TempProject;
beforeAll(async () => {
  project = await tempProject();
});
afterAll(() => project.dispose());

describe('polylogue demo', () => {
  it('shows one conversation through three tools, two vendors, a restart and an edit, whatever is set', async () => {
    // None of this is the demonstration's: it has a place of its own.
    const env = { POLYLOGUE_HOME: `${project.root}/none`, DISABLED_TOOLS: 'chat', OPENAI_API_KEY: 'sk-test' };
    const { code, out } = await runProgram(['demo', '--json'], { cwd: project.root, env });
    expect(code).toBe(0);
    const { steps } = JSON.parse(out);
    expect(steps.map(({ tool }: { tool: string }) => tool)).toEqual(['analyze', 'analyze', 'chat', 'debug']);
    const [, first, second, last] = steps;
    expect(first.sent.files).toEqual(['cart.ts (full)', 'cart.test.ts (full)']);
    expect(second.sent.files).toEqual(['cart.ts (full)', 'cart.test.ts (full)', 'cart.ts (unchanged)']);
    expect(last.sent.files.at(-1)).toBe('cart.ts (full)');
    expect(last.sent.kept_of_the_prompt_before).toBe(1);
    expect(last.sent.tokens).toBeGreaterThan(second.sent.tokens);
    expect(await readdir(project.root)).not.toContain('none');
  });

  it('is readable, and leaves nothing behind', async () => {
    const { code, out } = await runProgram(['demo'], {
      cwd: project.root,
      env: { NO_COLOR: '1', TMPDIR: project.root },
    });
    expect(code).toBe(0);
    expect(out).toContain('100 % of the prompt before opens this one unchanged');
    expect(out).toContain('polylogue init');
    expect((await readdir(project.root)).filter(name => name.startsWith('polylogue'))).toEqual([]);
  });

  it('says no more than that it was interrupted at Ctrl-C', async () => {
    const env = { TMPDIR: project.root };
    const { code, err } = await runProgram(['demo'], { cwd: project.root, env, interrupt: 'SIGINT' });
    expect([code, err]).toEqual([1, expect.stringMatching(/^polylogue: Interrupted\. \(CANCELLED\)\n.*\n$/)]);
    expect((await readdir(project.root)).filter(name => name.startsWith('polylogue'))).toEqual([]);
  });
});
