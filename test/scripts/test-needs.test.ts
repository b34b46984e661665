import { describe, expect, it } from 'vitest';
import { type Need, provide } from '../../scripts/test-needs/provide.ts';
import {
  type CliMachine,
  provideClis,
  type TestCli,
  testCliPath,
  testClis,
} from '../../scripts/test-needs/provide-clis.ts';

const git: Need = { program: 'git', aptPackage: 'git', purpose: 'a real git' };
const server: Need = { program: 'redis-server', aptPackage: 'redis', probe: ['-v'], purpose: 'a real Redis' };

function machine(installed: string[], options: { mayInstall: boolean; inRegistry?: Record<string, string> }) {
  const there = new Set(installed);
  const commands: string[] = [];
  return {
    commands,
    mayInstall: options.mayInstall,
    tell: () => {},
    runs: (command: string, args: readonly string[], env?: Record<string, string>) => {
      commands.push([command, ...args].join(' '));
      if (command === 'apt-get' && args[0] === 'install' && env?.DEBIAN_FRONTEND === 'noninteractive') {
        for (const name of args) if (options.inRegistry?.[name]) there.add(options.inRegistry[name]);
      }
      return there.has(command);
    },
  };
}

describe('what tests need of the machine', () => {
  it('does nothing when all is there', () => {
    const all = machine(['git', 'redis-server'], { mayInstall: true });
    expect(provide([git, server], all)).toEqual([]);
    expect(all.commands).toEqual(['git --version', 'redis-server -v']);
  });

  it('installs only what is missing', () => {
    const some = machine(['git'], { mayInstall: true, inRegistry: { redis: 'redis-server' } });
    expect(provide([git, server], some)).toEqual([]);
    expect(some.commands).toContain('apt-get install -y -q --no-install-recommends redis');
  });

  it('names what it may not install', () => {
    const none = machine([], { mayInstall: false });
    expect(provide([git, server], none)).toEqual([
      expect.stringContaining('"git" (a real git)'),
      expect.stringContaining('apt-get install redis'),
    ]);
    expect(none.commands.some(command => command.startsWith('apt-get'))).toBe(false);
  });

  it('names what could not be installed', () => {
    expect(provide([git], machine([], { mayInstall: true }))).toEqual([expect.stringContaining('"git"')]);
  });
});

describe('the CLIs that tests drive', () => {
  const cli: TestCli = { program: 'tool', npmPackage: '@maker/tool', version: '1.2.3' };
  const path = testCliPath(cli, 'cache');

  function npm(works: boolean) {
    const there = new Set<string>();
    const asked: string[] = [];
    const machine: CliMachine = {
      exists: name => there.has(name),
      makeFolder: () => {},
      move: () => void there.add(path),
      npm(args) {
        asked.push(args.join(' '));
        return works;
      },
      tell: () => {},
    };
    return { machine, asked };
  }

  it('are installed once, in the version that is pinned', () => {
    const { machine, asked } = npm(true);
    expect(provideClis([cli], machine, 'cache')).toEqual([]);
    expect(provideClis([cli], machine, 'cache')).toEqual([]);
    expect(asked).toEqual([
      expect.stringMatching(/--prefix cache\/maker-tool-1\.2\.3\.part .*--omit=optional @maker\/tool@1\.2\.3$/),
    ]);
    for (const { version } of testClis) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('are named when npm did not bring them', () => {
    expect(provideClis([cli], npm(false).machine, 'cache')).toEqual([expect.stringContaining('@maker/tool@1.2.3')]);
  });
});
