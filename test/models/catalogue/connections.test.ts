import { describe, expect, it } from 'vitest';
import { isPlaceholder } from '../../../src/core/text.ts';
import { configureProviders, createConnections, usableSettings } from '../../../src/models/catalogue/connections.ts';
import { type Connection, defineProvider } from '../../../src/models/provider.ts';
import { custom } from '../../../src/providers/custom.ts';
import { offlineEast } from '../../../src/providers/offline-east.ts';
import { openai } from '../../../src/providers/openai.ts';

const connection: Connection = {
  languageModel: () => {
    throw new Error('unused');
  },
  providerOptions: () => ({}),
  tailRole: () => 'user',
};

function provider(connect: () => Promise<Connection>) {
  const key = { env: ['ALPHA_KEY'], type: 'string', doc: 'x', group: 'x', secret: true } as const;
  return defineProvider({
    id: 'alpha',
    names: [],
    title: 'Alpha',
    options: { key },
    configured: settings => settings.key !== undefined,
    connect,
  });
}

describe('connections', () => {
  it('connects on first use, once for calls that come together', async () => {
    let count = 0;
    const connect = createConnections(
      configureProviders(
        [
          provider(async () => {
            count++;
            await Promise.resolve();
            return connection;
          }),
        ],
        { alpha: { key: 'k' } },
      ),
    );
    expect(count).toBe(0);
    const all = await Promise.all([connect('alpha'), connect('alpha'), connect('alpha')]);
    expect(new Set(all).size).toBe(1);
    await connect('alpha');
    expect(count).toBe(1);
  });

  it('tries again after a connect that failed', async () => {
    let count = 0;
    const connect = createConnections(
      configureProviders(
        [
          provider(async () => {
            if (++count === 1) throw new Error('no sk-abcdefghijk');
            return connection;
          }),
        ],
        { alpha: { key: 'k' } },
      ),
    );
    const first = connect('alpha');
    await expect(first).rejects.toMatchObject({
      kind: 'config',
      details: { next: expect.stringContaining('ALPHA_KEY') },
    });
    await expect(first).rejects.not.toThrow('sk-abcdefghijk');
    expect(await connect('alpha')).toBe(connection);
  });

  it('refuses a provider that does not exist, and names of built-in properties', async () => {
    const connect = createConnections(configureProviders([openai], {}));
    await expect(connect('nobody')).rejects.toMatchObject({
      details: { code: 'PROVIDER_NOT_FOUND', next: expect.stringContaining('openai') },
    });
    await expect(connect('__proto__')).rejects.toMatchObject({ details: { code: 'PROVIDER_NOT_FOUND' } });
  });

  it('names what to set, for each provider what it needs', async () => {
    const connect = createConnections(
      configureProviders([openai, custom], { openai: { apiKey: 'your_openai_api_key_here' } }),
    );
    await expect(connect('openai')).rejects.toMatchObject({
      kind: 'config',
      details: { code: 'CONFIG', next: expect.stringContaining('Set OPENAI_API_KEY,') },
    });
    await expect(connect('custom')).rejects.toMatchObject({
      details: { next: expect.stringContaining('Set CUSTOM_API_URL,') },
    });
  });

  it('refuses a base URL that is none, without repeating what is in it', async () => {
    for (const baseUrl of ['localhost:99999', 'ftp://x', 'https://me:hunter2@host/v1', 'not a url']) {
      const connect = createConnections(configureProviders([openai], { openai: { apiKey: 'k', baseUrl } }));
      const error = await connect('openai').catch(thrown => thrown);
      expect(error).toMatchObject({ kind: 'config', message: expect.stringContaining('OPENAI_BASE_URL') });
      expect(error.message + error.details.next).not.toContain('hunter2');
    }
  });

  it.each(['“sk-live-1234”', 'sk-live\u2014', 'sk\nlive'])(
    'refuses the key %j, which no header carries, by its variable',
    async apiKey => {
      const error = await createConnections(configureProviders([openai], { openai: { apiKey } }))('openai').catch(
        thrown => thrown,
      );
      expect(error).toMatchObject({
        kind: 'config',
        message: expect.stringContaining('OPENAI_API_KEY holds a character'),
      });
      expect(error.message + error.details.next).not.toContain('live');
    },
  );

  it('knows the variable of each key', () => {
    const names = configureProviders([openai, custom, offlineEast], {}).map(({ keyName }) => keyName);
    expect(names).toEqual(['OPENAI_API_KEY', 'CUSTOM_API_KEY', undefined]);
  });
});

describe('placeholders', () => {
  it.each([
    'your_openai_api_key_here',
    'your-key-here',
    'YOUR KEY HERE',
    '<your_key_here>',
    'sk-…',
    'AIza...',
    '…',
    '${HOME}/x',
    '${env:HOME}\\x',
  ])('%s counts as unset', value => {
    expect(isPlaceholder(value)).toBe(true);
    expect(usableSettings({ key: value })).toEqual({});
  });

  it.each(['sk-live', 'yours', 'here', 'my_key_here', 'Answer briefly…', 'sk-a.b', '/home/${USER}'])(
    '%s does not',
    value => {
      expect(isPlaceholder(value)).toBe(false);
    },
  );

  it('blanks count as unset and spaces around a value are dropped', () => {
    expect(usableSettings({ a: '  ', b: undefined, c: ' x\n' })).toEqual({ c: 'x' });
  });
});
