import { expect, it } from 'vitest';
import { fileAddress } from '../../src/workspace/paths.ts';

it.each<[string, boolean, string | undefined]>([
  ['file:///home/ann/a%20b/%C3%BC', false, '/home/ann/a b/ü'],
  ['file:///home/ann/a b', false, '/home/ann/a b'],
  ['FILE://localhost/srv/x/', false, '/srv/x/'],
  ['file:///srv/../etc', false, '/etc'],
  ['file:///srv/a%5Cb', false, '/srv/a\\b'],
  ['file:///C:/Users/ann/x', true, 'C:\\Users\\ann\\x'],
  ['file:///c%3A/Users/ann', true, 'c:\\Users\\ann'],
  ['file:///C:\\Users\\ann', true, 'C:\\Users\\ann'],
  ['file://share/folder/x', true, '\\\\share\\folder\\x'],
  ['file:///srv/x', true, undefined],
  ['file://elsewhere/srv/x', false, undefined],
  ['file:///srv\\x', false, undefined],
  ['file:///srv/a%2Fb', false, undefined],
  ['file:///srv/%FF', false, undefined],
  ['file:///srv/100%', false, undefined],
  ['file:///srv/a%00b', false, undefined],
  ['file:///srv/a%0Ab', false, undefined],
  ['file:///srv/a?b', false, undefined],
  ['file:///srv/a#b', false, undefined],
  ['file:srv/x', false, undefined],
  ['/srv/x', false, undefined],
  ['https://srv/x', false, undefined],
  ['file://user@/srv', false, undefined],
  [`file:///${'x'.repeat(9_000)}`, false, undefined],
  ['', false, undefined],
])('reads the address %s strictly (Windows: %s)', (address, isWindows, path) => {
  const told = fileAddress(address, isWindows);
  expect('path' in told ? told.path : undefined).toBe(path);
  if ('why' in told) expect(told.why).toMatch(/^it .{5,60}$/);
});
