import { describe, expect, it } from 'vitest';
import { editToml, readToml, setToml } from '../../../src/cli/init/edit-toml.ts';

const path = ['mcp_servers', 'polylogue'] as const;
const entry = { command: '/n"ode', args: ['/main.js'], env: { 'A B': 'x\ty' }, tool_timeout_sec: 600 };
const block = [
  '[mcp_servers.polylogue]',
  'command = "/n\\"ode"',
  'args = ["/main.js"]',
  'env = { "A B" = "x\\ty" }',
  'tool_timeout_sec = 600',
  '',
].join('\n');

describe('editing a TOML table', () => {
  it.each([
    ['nothing', ''],
    ['settings', 'model = "o3" # mine\n'],
    ['another server', '[mcp_servers.other]\ncommand = "x"\n\n# the end\n'],
    ['a list over lines', 'notify = [\n  "[mcp_servers.polylogue]",\n]\n'],
    ['a text over lines', 'text = """\n[mcp_servers.polylogue]\n"""\n'],
    ['a similar name', '[mcp_servers.polylogue-2]\ncommand = "x"\n'],
  ])('adds it after %s and takes it out again, to the byte', (_what, text) => {
    expect(readToml(text, path)).toBeUndefined();
    const added = editToml(text, path, entry);
    expect(added.startsWith(text)).toBe(true);
    expect(added.endsWith(block)).toBe(true);
    expect(readToml(added, path)).toEqual(entry);
    expect(editToml(added, path, undefined)).toBe(text);
  });

  it('takes it out with its sub-tables, and leaves what follows', () => {
    const before =
      '# top\n[mcp_servers."polylogue"]\ncommand = "old"\n[mcp_servers.polylogue.env]\nA = "1"\n\n# next\n[tui]\nx = 1\n';
    expect(editToml(before, path, undefined)).toBe('# top\n\n# next\n[tui]\nx = 1\n');
  });

  it.each(['constructor', '__proto__'])('finds no table %s that is not there', name => {
    expect(readToml('[mcp_servers.polylogue]\ncommand = "x"\n', ['mcp_servers', name])).toBeUndefined();
  });

  it('leaves no second table of ours further down', () => {
    const before = '[mcp_servers.polylogue]\ncommand = "old"\n[tui]\nx = 1\n\n[mcp_servers.polylogue.env]\nA = "1"\n';
    expect(editToml(before, path, undefined)).toBe('[tui]\nx = 1\n');
  });

  it('keeps CR LF', () => {
    const added = editToml('a = 1\r\n', path, { command: 'x' });
    expect(added).toBe('a = 1\r\n\r\n[mcp_servers.polylogue]\r\ncommand = "x"\r\n');
    expect(editToml(added, path, undefined)).toBe('a = 1\r\n');
    expect(setToml('a = 1\r\n', ['b', 'c'], true, false)).toBe('a = 1\r\n[b]\r\nc = true\r\n');
  });

  it('keeps a byte-order mark, and refuses what is no TOML with its line', () => {
    const added = editToml('\uFEFFa = 1\n', path, { command: 'x' });
    expect(added).toBe('\uFEFFa = 1\n\n[mcp_servers.polylogue]\ncommand = "x"\n');
    expect(editToml(added, path, undefined)).toBe('\uFEFFa = 1\n');
    expect(() => editToml('a = 1\nb = \n', path, entry)).toThrow(/Cannot edit .*line [23]/);
  });

  it.each([
    'mcp_servers = { polylogue = { command = "x" } }\n',
    'mcp_servers.polylogue.command = "x"\n',
    '[mcp_servers]\npolylogue = { command = "x" }\n',
  ])('refuses to contradict %j', text => {
    expect(() => editToml(text, path, entry)).toThrow(/cannot edit/);
  });
});
