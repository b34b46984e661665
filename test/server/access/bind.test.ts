import { expect, test } from 'vitest';
import { checkBind } from '../../../src/server/access/addresses.ts';

const near = ['127.0.0.1', '127.1.2.3', 'localhost', 'LOCALHOST', '::1', '[::1]', '::ffff:127.0.0.1'];
const open = [
  '0.0.0.0',
  '::',
  '',
  '192.168.1.4',
  'fe80::1',
  'poly.example.org',
  '::ffff:10.0.0.1',
  '127.0.0.1.example',
];

test.each(near)('listens on %s without a token', host => {
  expect(() => checkBind({ host, tokens: 0 })).not.toThrow();
});

test.each(open)('refuses to listen on %j without a token, and listens with one', host => {
  expect(() => checkBind({ host, tokens: 0 })).toThrow('without a token');
  expect(() => checkBind({ host, tokens: 1 })).not.toThrow();
});
