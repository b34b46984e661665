import { describe, expect, it } from 'vitest';
import { parsePathReference } from '../../src/workspace/paths.ts';

const parse = (input: string) => parsePathReference(input, '/work/app', '/home/u');

describe('parsePathReference', () => {
  it.each([
    ['/a/b.ts', '/a/b.ts'],
    ['src/b.ts', '/work/app/src/b.ts'],
    ['./src/../b.ts', '/work/app/b.ts'],
    ['../../etc/passwd', '/etc/passwd'],
    ['~', '/home/u'],
    ['~/x.ts', '/home/u/x.ts'],
    ['~other/x.ts', '/work/app/~other/x.ts'],
    ['--help', '/work/app/--help'],
    ['a\nb.ts', '/work/app/a\nb.ts'],
    ['file:///a/b%20c.ts', '/a/b c.ts'],
    ['FILE:///a/%C3%A9.ts', '/a/é.ts'],
    ['file://localhost/a.ts', '/a.ts'],
    ['file:///a/%2e%2e/%2e%2e/etc/passwd', '/etc/passwd'],
  ])('reads %j', (input, path) => {
    expect(parse(input)).toEqual({ input, path });
  });

  it.each([
    ['b.ts:10', '/work/app/b.ts', { from: 10, to: 10 }],
    ['b.ts:10-80', '/work/app/b.ts', { from: 10, to: 80 }],
    ['b.ts:80-10', '/work/app/b.ts', { from: 80, to: 10 }],
    ['~/b.ts:3', '/home/u/b.ts', { from: 3, to: 3 }],
    ['file:///a/b%20c.ts:7-9', '/a/b c.ts', { from: 7, to: 9 }],
  ])('reads the range of %j and keeps the name it might be', (input, path, range) => {
    expect(parse(input)).toEqual({ input, path, range, literal: expect.stringContaining(`${path}:`) });
  });

  it.each([
    '',
    '  ',
    'a\0b',
    'file:///a%00b',
    'file:///a%2fb',
    'file://host/a.ts',
    'file:///a#b',
    'file:///a?b',
    'file://[',
    'x'.repeat(9_000),
  ])('refuses %j', input => {
    expect(parse(input)).toMatchObject({ code: 'bad_path' });
  });

  it('names an encoded slash, which no path of a file has', () => {
    expect(parse('file:///a%2fb')).toMatchObject({ reason: expect.stringContaining('encoded slash (%2F)') });
  });

  it('refuses ~ where no home is known', () => {
    expect(parsePathReference('~/x', '/work/app', '')).toMatchObject({ code: 'bad_path' });
  });

  it('shows line breaks and right-to-left marks of a refused path by their numbers', () => {
    expect(parse('a\0\n\u202eb')).toMatchObject({ path: 'a\\u{0}\\u{a}\\u{202e}b' });
  });
});
