import { parse } from 'jsonc-parser';
import { getStaticTOMLValue, parseTOML } from 'toml-eslint-parser';
import { describe, expect, it } from 'vitest';
import { withEntry } from '../../../src/cli/init/edit-config.ts';
import { hosts } from '../../../src/cli/init/hosts.ts';

const server = {
  command: 'C:\\Program Files\\nodejs\\node.exe',
  args: ['C:\\Users\\ann\\polylogue\\dist\\main.js'],
  values: {},
  references: [],
};

describe.each(hosts.map(host => [host.name, host] as const))('the file of %s', (name, host) => {
  it('holds paths of Windows as they are, and keeps line ends of Windows', () => {
    const before = host.format === 'json' ? '{\r\n  "other": 1\r\n}\r\n' : 'other = 1\r\n';
    const text = withEntry(host, before, 'polylogue', host.entry(server), []);
    expect(text.replaceAll('\r\n', '')).not.toContain('\n');
    const document: unknown = host.format === 'json' ? parse(text) : getStaticTOMLValue(parseTOML(text));
    expect(document).toMatchObject({ other: 1 });
    expect(JSON.stringify(document)).toContain(JSON.stringify(server.command));
    expect(JSON.stringify(document)).toContain(JSON.stringify(server.args[0]));
  });

  it('is where the host looks on each system', () => {
    const at = (platform: string, homeDir: string, env = {}) =>
      host.user({ platform, homeDir, env }).replaceAll('\\', '/');
    const windows = at('win32', 'C:\\Users\\ann', { APPDATA: 'C:\\Users\\ann\\AppData\\Roaming' });
    const mac = at('darwin', '/Users/ann');
    const inSettings: Record<string, [string, string]> = {
      vscode: [
        'C:/Users/ann/AppData/Roaming/Code/User/mcp.json',
        '/Users/ann/Library/Application Support/Code/User/mcp.json',
      ],
      zed: ['C:/Users/ann/AppData/Roaming/Zed/settings.json', '/Users/ann/.config/zed/settings.json'],
    };
    const linux = at('linux', '/home/ann');
    const same = (home: string) => linux.replace('/home/ann', home);
    expect([windows, mac]).toEqual(inSettings[name] ?? [same('C:/Users/ann'), same('/Users/ann')]);
  });
});
