import { describe, expect, it } from 'vitest';
import { editJson, readJson, withEntry, withoutEntry } from '../../../src/cli/init/edit-config.ts';
import { hosts } from '../../../src/cli/init/hosts.ts';

const path = ['mcpServers', 'polylogue'] as const;
const entry = { command: 'node', args: ['main.js'] };

describe('editing a JSON entry', () => {
  it.each([
    [
      'spaces',
      '{\n    // ours\n    "mcpServers": {\n        "a": { "command": "x" } // last\n    },\n    "z": [1, 2], /* end */\n}\n',
    ],
    ['tabs', '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}'],
    ['CR LF', '{\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n'],
    ['a byte-order mark', '\uFEFF{\n  "mcpServers": {\n    "a": {}\n  }\n}\n'],
  ])('adds it beside others in a file with %s, and takes it out again, to the byte', (_what, text) => {
    const added = editJson(text, path, entry);
    expect(readJson(added, path)).toEqual(entry);
    for (const line of text.split('\n').filter(line => line.includes('/'))) {
      const comment = /\/[/*].*/.exec(line)?.[0].trim() ?? '';
      expect(added).toContain(comment);
    }
    expect(added.includes('\r\n')).toBe(text.includes('\r\n'));
    expect(added.replaceAll('\r\n', '').includes('\r')).toBe(false);
    expect(editJson(added, path, undefined)).toBe(text);
  });

  it.each([
    ['{ "mcpServers": {} }', 'an empty table'],
    ['{"mcpServers":{"a":{"x":[1,  2]}}}', 'all on one line'],
    ['{\n  "mcpServers": {\n    "a": { "x" : 1 },\n  },\n}\n', 'a trailing comma'],
  ])('gives back %j, %s', text => {
    const added = editJson(text, path, entry);
    expect(readJson(added, path)).toEqual(entry);
    expect(editJson(added, path, undefined)).toBe(text);
  });

  it.each([
    ['// Settings of the host\n', '\n'],
    ['/* none yet */', '\n'],
    ['// a line\r\n/* more\r\n null */\r\n', '\r\n'],
    ['// before\nnull // behind\n', '\n'],
    ['\uFEFF// marked\n', '\n'],
  ])('writes into %j, which has only comments, and keeps them', (text, eol) => {
    const added = editJson(text, path, entry);
    expect(readJson(added, path)).toEqual(entry);
    for (const comment of text.match(/\/\/[^\r\n]*|\/\*.*\*\//gs) ?? []) expect(added).toContain(comment);
    expect(added.endsWith(eol)).toBe(true);
    expect(added.startsWith('\uFEFF')).toBe(text.startsWith('\uFEFF'));
    expect(readJson(text, path)).toBeUndefined();
    expect(readJson(editJson(added, path, undefined), path)).toBeUndefined();
    const [host] = hosts.filter(({ format, key }) => format !== 'toml' && key === 'mcpServers');
    expect(withoutEntry(host!, added, 'polylogue', [text])).toBe(text);
  });

  it('replaces its value alone', () => {
    const text = '{\n  "mcpServers": {\n    "polylogue": { "command": "old" }, // ours\n    "b": {}\n  }\n}\n';
    const edited = editJson(text, path, { command: 'new' });
    expect(edited).toBe(text.replace('{ "command": "old" }', '{\n      "command": "new"\n    }'));
  });

  it('keeps comments around what it takes out', () => {
    const text = '{ "mcpServers": {\n  "a": {}, // theirs\n  "polylogue": {}, // ours\n  // next\n  "b": {}\n} }';
    const rest = editJson(text, path, undefined);
    for (const comment of ['// theirs', '// ours', '// next']) expect(rest).toContain(comment);
    expect(readJson(rest, ['mcpServers', 'b'])).toEqual({});
    expect(readJson(rest, path)).toBeUndefined();
    const alone = '{ "mcpServers": { /* a */ "polylogue": {} /* b */ } }';
    expect(editJson(alone, path, undefined)).toMatch(/\/\* a \*\/.*\/\* b \*\//);
  });

  it.each([
    '{ "mcpServers": {\n  "a": {}, // theirs\n  "polylogue": {}, "b": {} } }',
    '{ "mcpServers": {\n  "b": {}, // theirs\n  "polylogue": {}\n} }',
  ])('leaves %j sound', text => {
    const rest = editJson(text, path, undefined);
    expect(rest).toContain('// theirs');
    expect(rest).not.toMatch(/,\s*(\/\/.*)?\s*\}/);
    expect(readJson(rest, ['mcpServers', 'b'])).toEqual({});
  });

  it('begins a file', () => {
    expect(JSON.parse(editJson('', path, entry))).toEqual({ mcpServers: { polylogue: entry } });
  });

  it.each(['null', '{ "mcpServers": null }', '{\n  "mcpServers": { "polylogue": null }\n}\n'])(
    'takes what is null in %j for absent',
    text => {
      expect(JSON.parse(editJson(text, path, entry))).toEqual({ mcpServers: { polylogue: entry } });
      const hosted = withEntry(hosts.find(({ key }) => key === 'mcpServers')!, text, 'polylogue', entry, []);
      expect(JSON.parse(hosted)).toEqual({ mcpServers: { polylogue: entry } });
    },
  );

  it('changes nothing where there is nothing to take out', () => {
    expect(editJson('{ "a": 1 }', path, undefined)).toBe('{ "a": 1 }');
  });

  it.each([
    ['{ "a": }', 'line 1'],
    ['{\n"a": 1\n"b": 2 }', 'line 3'],
    ['[]', 'not an object'],
    ['{ "mcpServers": [] }', '"mcpServers" is not an object'],
  ])('refuses %j and says where', (text, told) => {
    expect(() => editJson(text, path, entry)).toThrow(told);
  });
});
