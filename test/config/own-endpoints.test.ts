import { describe, expect, it } from 'vitest';
import { readOwnEndpoints } from '../../src/config/endpoints.ts';
import { loadConfig } from '../../src/config/load.ts';
import { options } from '../../src/config/options.ts';

const home = '/home/ann/.local/share/polylogue';
const cwd = '/work/app';

function load(endpoints: unknown, more: { env?: Record<string, string>; files?: Record<string, string> } = {}) {
  const files: Record<string, string> = { [`${home}/config.json`]: JSON.stringify({ endpoints }), ...more.files };
  return loadConfig({
    tables: { app: options, openai: {} },
    env: more.env ?? {},
    argvFlags: {},
    homeDir: '/home/ann',
    platform: 'linux',
    cwd,
    readFile: path => files[path],
    readEndpoints: readOwnEndpoints,
  });
}

const url = 'http://127.0.0.1:8000/v1';

describe('endpoints of config.json', () => {
  it('are read whole, with the key from the environment or from .env beside it', () => {
    const entries = [
      { id: 'myvllm', names: ['v'], api_url: url, api_key: 'k-1', models: ['llama-3'], context_window: 8192 },
      {
        id: 'gateway',
        api_url: `${url}/`,
        api_key_env: 'GATEWAY_KEY',
        headers: { 'X-Org': 'a', 'X-Auth-Token': 't-1' },
      },
      { id: 'other', api_url: url, api_key_env: 'OTHER_KEY' },
    ];
    const { endpoints, warnings, secrets } = load(entries, {
      env: { GATEWAY_KEY: 'k-2' },
      files: { [`${home}/.env`]: 'OTHER_KEY=k-3\n' },
    });
    expect(warnings).toEqual([]);
    expect(endpoints).toMatchObject([
      { id: 'myvllm', names: ['v'], apiUrl: url, apiKey: 'k-1', models: ['llama-3'], contextWindow: 8192 },
      { id: 'gateway', apiKey: 'k-2', headers: { 'X-Org': 'a', 'X-Auth-Token': 't-1' } },
      { id: 'other', apiKey: 'k-3' },
    ]);
    expect(secrets).toEqual(expect.arrayContaining(['k-1', 'k-2', 'k-3', 't-1']));
    expect(secrets).not.toContain('a');
  });

  const bad: [name: string, entry: unknown, says: RegExp][] = [
    ['no object', 7, /endpoints\[0\] \(config\.json\) is disabled: it is no object/],
    ['no id', { api_url: url }, /id is missing/],
    ['an id that is no word', { id: 'My Server', api_url: url }, /id must be lower-case/],
    ["an id that is a provider's", { id: 'openai', api_url: url }, /"openai" is taken/],
    ['the id `auto`', { id: 'auto', api_url: url }, /"auto" is taken/],
    ['no address', { id: 'a' }, /api_url is missing/],
    ['an address of another kind', { id: 'a', api_url: 'file:///etc/passwd' }, /api_url must be a whole http/],
    ['an address with a password', { id: 'a', api_url: 'http://me:s3cret@h/v1' }, /must not carry a user or password/],
    ['an address with a query', { id: 'a', api_url: 'http://h/v1?key=s3cret' }, /must not carry a query/],
    ['two keys', { id: 'a', api_url: url, api_key: 'x', api_key_env: 'X' }, /both api_key and api_key_env/],
    [
      'a placeholder for a key',
      { id: 'a', api_url: url, api_key: 'your_key_here' },
      /api_key still holds a placeholder/,
    ],
    ['a key that is not set', { id: 'a', api_url: url, api_key_env: 'NO_SUCH' }, /NO_SUCH.*is not set/],
    ['an unknown member', { id: 'a', api_url: url, 'api-key': 's3cret' }, /api-key means nothing/],
    ['a window that is none', { id: 'a', api_url: url, context_window: 'wide' }, /context_window is wrong/],
    ['a header that breaks lines', { id: 'a', api_url: url, headers: { 'x-a': 'b\r\nx: y' } }, /headers\.x-a must be/],
    ['a header of the protocol', { id: 'a', api_url: url, headers: { Host: 'evil' } }, /Host cannot be set/],
    ['a name twice', { id: 'a', names: ['a'], api_url: url }, /"a" is taken/],
  ];
  it.each(bad)('lose an entry with %s, and only that', (_name, entry, says) => {
    const { endpoints, warnings } = load([entry, { id: 'sound', api_url: url }]);
    expect(endpoints.map(({ id }) => id)).toEqual(['sound']);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(says);
    expect(warnings[0]).not.toContain('s3cret');
  });

  it('may not share a name', () => {
    const { endpoints, warnings } = load([
      { id: 'one', names: ['x'], api_url: url },
      { id: 'x', api_url: url },
    ]);
    expect(endpoints.map(({ id }) => id)).toEqual(['one']);
    expect(warnings.join()).toContain('endpoints[1] "x"');
  });

  it('are a list or nothing', () => {
    const { endpoints, warnings } = load({ id: 'a', api_url: url });
    expect(endpoints).toEqual([]);
    expect(warnings.join()).toContain('is no list');
  });

  it("come from the operator's own file alone: a trusted project has no say", () => {
    const { endpoints } = load(undefined, {
      files: {
        [`${home}/trusted.json`]: JSON.stringify({ directories: [cwd] }),
        [`${cwd}/config.json`]: JSON.stringify({ endpoints: [{ id: 'evil', api_url: url }] }),
        [`${cwd}/.env`]: 'ENDPOINTS=[{"id":"evil","api_url":"http://evil/v1"}]\nendpoints=evil\n',
      },
    });
    expect(endpoints).toEqual([]);
  });
});
