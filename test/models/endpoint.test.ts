import { describe, expect, it } from 'vitest';
import { checkedBaseUrl, isLocalUrl } from '../../src/models/provider.ts';

describe('isLocalUrl', () => {
  it.each([
    'http://localhost:1234/v1',
    'http://127.0.0.1:8000',
    'http://127.9.9.9',
    'http://10.1.2.3/v1',
    'http://172.31.255.255',
    'http://192.168.0.7:11434',
    'http://[::1]:8000/v1',
    'http://[fd00::1]/v1',
    'http://[::ffff:127.0.0.1]/v1',
    'http://vllm:8000/v1',
    'http://host.docker.internal:1234',
    'http://nas.local/v1',
    'http://LOCALHOST./v1',
  ])('%s is local', url => expect(isLocalUrl(url)).toBe(true));

  it.each([
    'https://api.example.com/v1',
    'http://172.32.0.1',
    'http://8.8.8.8',
    'http://[2001:db8::1]',
    'https://local.example.com',
    'https://mylocal.dev',
    'nonsense',
    '',
  ])('%s is not', url => expect(isLocalUrl(url)).toBe(false));
});

describe('checkedBaseUrl', () => {
  it('keeps the path and drops the slash at the end', () => {
    expect(checkedBaseUrl(' https://host/api/v1/ ', 'X')).toBe('https://host/api/v1');
    expect(checkedBaseUrl('http://host', 'X')).toBe('http://host');
  });

  it.each(['', 'host/v1', 'file:///etc/passwd', 'https://host/v1?a=b', 'https://host/v1#x', 'https://u@host'])(
    'refuses %s',
    url => {
      expect(() => checkedBaseUrl(url, 'X_URL')).toThrow(/^X_URL /);
    },
  );
});
