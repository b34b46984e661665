import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { installTestClis } from '../../scripts/test-clis.ts';
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

  function npm(brings: string | undefined) {
    const there = new Set<string>();
    const asked: string[] = [];
    const left: string[] = [];
    const machine: CliMachine = {
      exists: name => there.has(name),
      makePart(folder) {
        left.push(`${folder}.part`);
        return `${folder}.part`;
      },
      finish(part, folder) {
        left.splice(left.indexOf(part), 1);
        if (folder !== undefined && brings !== undefined) there.add(brings);
      },
      npm(args) {
        asked.push(args.join(' '));
        return brings !== undefined;
      },
      tell: () => {},
    };
    return { machine, asked, left };
  }

  it('are installed once, in the version that is pinned', () => {
    const { machine, asked } = npm(path);
    expect(provideClis([cli], machine, 'cache')).toEqual([]);
    expect(provideClis([cli], machine, 'cache')).toEqual([]);
    expect(asked).toEqual([
      expect.stringMatching(/--prefix cache\/maker-tool-1\.2\.3\.part .*--omit=optional @maker\/tool@1\.2\.3$/),
    ]);
    for (const { version } of testClis) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('are named when npm did not bring them, and nothing half is left', () => {
    const { machine, left } = npm(undefined);
    expect(provideClis([cli], machine, 'cache')).toEqual([expect.stringContaining('@maker/tool@1.2.3')]);
    expect(left).toEqual([]);
  });

  it('are installed again where the program for this machine did not come along', () => {
    const { machine, asked } = npm(path);
    const native = { ...cli, platforms: true, binary: '@maker/tool-linux/tool' };
    expect(provideClis([native], machine, 'cache')).toEqual([expect.stringContaining('@maker/tool@1.2.3')]);
    expect(provideClis([native], machine, 'cache')).toEqual([expect.stringContaining('@maker/tool@1.2.3')]);
    expect(asked.length).toBe(2);
  });

  it('are named with the reason when the cache can not be written', () => {
    const { machine } = npm(path);
    const makePart = () => {
      throw new Error('EACCES: permission denied');
    };
    const problems = provideClis([cli, { ...cli, npmPackage: 'other' }], { ...machine, makePart }, 'cache');
    expect(problems).toEqual([
      expect.stringMatching(/@maker\/tool@1\.2\.3.*EACCES/),
      expect.stringMatching(/other@1\.2\.3.*EACCES/),
    ]);
  });
});

describe('a cache of CLIs', () => {
  let folder = '';
  let path = process.env.PATH;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'clis-'));
    mkdirSync(join(folder, 'bin'));
    path = process.env.PATH;
    process.env.PATH = `${join(folder, 'bin')}:${path}`;
  });
  afterEach(() => {
    process.env.PATH = path;
    rmSync(folder, { recursive: true, force: true });
  });

  const cli: TestCli = { program: 'tool', npmPackage: '@maker/tool', version: '1.2.3' };
  const npm = (script: string) => writeFileSync(join(folder, 'bin/npm'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const install = (limits: { each: number; all: number }) => installTestClis([cli], join(folder, 'cache'), limits);

  it('gets what npm brought whole, and loses what an install that was broken off left', () => {
    // In a container ids come again: one that is left may have the id of this process.
    for (const pid of [spawnSync('true').pid, process.pid])
      mkdirSync(join(folder, 'cache', `maker-tool-1.2.3.part-${pid}`), { recursive: true });
    npm('mkdir -p "$3/node_modules/.bin" && touch "$3/node_modules/.bin/tool"');
    expect(install({ each: 10_000, all: 10_000 })).toEqual([]);
    expect(readdirSync(join(folder, 'cache'))).toEqual(['maker-tool-1.2.3']);
  });

  it.each([
    ['takes too long', 'mkdir -p "$3/node_modules/.bin" && touch "$3/node_modules/.bin/tool" && exec sleep 30', 300],
    ['fails in the middle', 'mkdir -p "$3/node_modules/.bin" && touch "$3/node_modules/.bin/tool" && exit 1', 10_000],
  ])('has nothing of an install that %s', (_, script, each) => {
    npm(script);
    expect(install({ each, all: 10_000 })).toEqual([expect.stringContaining('@maker/tool@1.2.3')]);
    expect(readdirSync(join(folder, 'cache'))).toEqual([]);
  });

  it('begins no install once the time for all is over', () => {
    npm(`touch ${join(folder, 'begun')}`);
    expect(install({ each: 10_000, all: 0 })).toEqual([expect.stringContaining('@maker/tool@1.2.3')]);
    expect(readdirSync(folder)).not.toContain('begun');
  });
});
