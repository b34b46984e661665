import { describe, expect, test } from 'vitest';
import { createAddressGuard } from '../../../src/server/access/addresses.ts';

const near = createAddressGuard({ bind: '127.0.0.1', address: '127.0.0.1', port: 8765, hosts: [], origins: [] });
const proxied = createAddressGuard({
  bind: '0.0.0.0',
  address: '0.0.0.0',
  port: 8765,
  hosts: ['poly.example.org'],
  origins: ['https://app.example.org', 'https://other.example.org:8443/'],
});
const verdict = (guard: typeof near, host: string[], origin: string[] = []) =>
  guard({ host, origin })?.class ?? 'passes';

describe('the address guard', () => {
  test.each([
    ['127.0.0.1:8765'],
    ['127.0.0.1'],
    ['127.8.9.10:1'],
    ['localhost:8765'],
    ['LOCALHOST'],
    ['localhost.:8765'],
    ['[::1]:8765'],
    ['[::1]'],
    ['app.localhost:80'],
  ])('lets a program in that calls %s', host => {
    expect(verdict(near, [host])).toBe('passes');
  });

  test.each([
    ['evil.example'],
    ['evil.example:8765'],
    ['127.0.0.1.evil.example'],
    ['localhost.evil.example'],
    ['evillocalhost'],
    ['127.0.0.1@evil.example'],
    ['evil.example#127.0.0.1'],
    ['127.0.0.1:8765/path'],
    ['127.0.0.1 evil.example'],
    ['2130706433'],
    ['0x7f.1'],
    ['0.0.0.0'],
    ['[::]'],
    ['[::ffff:10.0.0.1]'],
    ['10.0.0.1'],
    ['127.0.0.1:123456'],
    [':8765'],
    [''],
  ])('refuses the host %j', host => {
    expect(verdict(near, [host])).toBe('host');
  });

  test('refuses a request without a host, and one with two', () => {
    expect(verdict(near, [])).toBe('host');
    expect(verdict(near, ['127.0.0.1', '127.0.0.1'])).toBe('host');
  });

  test('lets its own page in, and no other of this machine', () => {
    expect(verdict(near, ['127.0.0.1:8765'], ['http://127.0.0.1:8765'])).toBe('passes');
    for (const page of [
      'http://localhost:8765',
      'http://[::1]:8765',
      'http://127.0.0.1:5173',
      'https://127.0.0.1:8765',
    ])
      expect(verdict(near, ['127.0.0.1:8765'], [page]), page).toBe('origin');
  });

  test.each([
    ['null'],
    [''],
    ['https://evil.example'],
    ['http://localhost.evil.example'],
    ['http://127.0.0.1.evil.example:8765'],
    ['http://evil.example#http://localhost'],
    ['http://localhost@evil.example'],
    ['http://user@localhost'],
    ['file://localhost'],
    ['file:///etc'],
    ['chrome-extension://abcdef'],
    ['localhost'],
    ['//localhost'],
    ['http://localhost/path'],
  ])('refuses the origin %j', origin => {
    expect(verdict(near, ['127.0.0.1:8765'], [origin])).toBe('origin');
  });

  test('refuses two origins', () => {
    const own = 'http://127.0.0.1:8765';
    expect(verdict(near, ['localhost'], [own, own])).toBe('origin');
  });

  test('knows the names and pages that the operator allows, and no others', () => {
    expect(verdict(proxied, ['poly.example.org'])).toBe('passes');
    expect(verdict(proxied, ['Poly.Example.org:443'], ['https://app.example.org'])).toBe('passes');
    expect(verdict(proxied, ['poly.example.org'], ['https://poly.example.org'])).toBe('passes');
    expect(verdict(proxied, ['poly.example.org'], ['https://other.example.org:8443'])).toBe('passes');
    expect(verdict(proxied, ['poly.example.org'], ['https://other.example.org'])).toBe('origin');
    expect(verdict(proxied, ['poly.example.org'], ['http://app.example.org'])).toBe('origin');
    expect(verdict(proxied, ['xpoly.example.org'])).toBe('host');
    expect(verdict(proxied, ['0.0.0.0:8765'])).toBe('host');
  });

  test.each([['10.0.0.1:8765'], ['[fd00::2]:8765']])(
    'lets programs and its own page in at %s where it listens on all',
    host => {
      expect(verdict(proxied, [host])).toBe('passes');
      expect(verdict(proxied, [host], [`http://${host}`])).toBe('passes');
      for (const page of ['http://10.0.0.9:8765', `http://${host}1`, 'http://evil.example', 'http://127.0.0.2:8765'])
        expect(verdict(proxied, [host], [page]), page).toBe('origin');
      expect(verdict(proxied, ['127.0.0.2:8765'], ['http://127.0.0.2:8765'])).toBe('origin');
    },
  );
});
