import { beforeAll, describe, expect, it } from 'vitest';
import { type Step, walkAsNewUser } from '../../scripts/new-user/walk.ts';

let steps: Map<string, Step>;

beforeAll(async () => {
  steps = new Map((await walkAsNewUser()).map(step => [step.id, step]));
});

const step = (id: string): Step => steps.get(id)!;

describe('a new user is told what to do', () => {
  it('by the help of a command', () => {
    expect(step('help')).toMatchObject({ code: 0, out: expect.stringContaining('Examples:') });
  });

  it('without a key: which to set, and how to try it without one', () => {
    expect([step('no-key').code, step('doctor-no-key').code]).toEqual([2, 1]);
    for (const id of ['no-key', 'doctor-no-key']) {
      const { out, err } = step(id);
      expect(out + err).toContain('OPENAI_API_KEY');
      expect(out + err).toContain('--offline');
    }
    expect(step('offline')).toMatchObject({ code: 0, out: expect.stringContaining('echo-') });
    expect(step('offline').out).not.toContain('none may be asked');
  });

  it('with a wrong key: that it is refused, whose it is, and where it is set', () => {
    for (const id of ['wrong-key', 'doctor-wrong-key']) {
      const { code, out, err } = step(id);
      expect(code).toBe(1);
      expect(out + err).toMatch(/key/i);
      expect(out + err).toMatch(/openai/i);
      expect(out + err).not.toContain('sk-a-wrong-key');
    }
    expect(step('doctor-wrong-key').out).toContain('correct OPENAI_API_KEY');
  });

  it('with the right key: all is there, and the answer is all that is printed', () => {
    expect(step('doctor-right-key')).toMatchObject({ code: 0, out: expect.stringContaining('Everything works.') });
    for (const id of ['right-key', 'continue']) {
      expect(step(id)).toMatchObject({ code: 0, out: 'The README, then src/main.ts.\n', err: '' });
    }
  });

  it('in /: that nothing can be read, and what makes files readable', () => {
    expect(step('root').code).toBe(1);
    expect(step('root').err).toContain('No directory is readable');
    expect(step('root').err).toContain('POLYLOGUE_ROOTS');
    expect(step('doctor-root').out).toContain('--roots');
  });

  it('on the way into a host: which hosts there are, then what to do there', () => {
    expect(step('init-no-host')).toMatchObject({ code: 2, err: expect.stringContaining('--client') });
    expect(step('init')).toMatchObject({ code: 0, out: expect.stringContaining('run /mcp to check') });
  });
});
