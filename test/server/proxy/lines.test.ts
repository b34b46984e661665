import { expect, it } from 'vitest';
import { textSplitter } from '../../../src/server/mcp/lines.ts';

function read(maxBytes: number, ...texts: (string | Buffer)[]) {
  const lines: unknown[] = [];
  const split = textSplitter(maxBytes, {
    onText: text => lines.push(text),
    onRefused: refused => lines.push({ refused }),
  });
  for (const text of [...texts, '\n']) split(Buffer.from(text));
  return lines;
}

it('puts lines together from pieces that end anywhere, in the middle of a letter too', () => {
  const bytes = Buffer.from('{"a":"é😀"}\n');
  for (let at = 1; at < bytes.length; at++)
    expect(read(100, bytes.subarray(0, at), bytes.subarray(at))).toEqual(['{"a":"é😀"}']);
});

it('gives several lines of one piece, without empty ones, and the last one also without an end', () => {
  expect(read(100, 'one\n\n  \ntwo\r\nthr')).toEqual(['one', 'two\r', 'thr']);
});

it('leaves out a line that is too long, however it comes, and goes on with the next', () => {
  const long = { refused: { jsonrpc: '2.0', id: null, error: { code: -32_600, message: expect.any(String) } } };
  expect(read(5, 'abcdef\nab\n')).toEqual([long, 'ab']);
  expect(read(5, 'abc', 'def', 'ghi\nab\n')).toEqual([long, 'ab']);
  expect(read(5, 'abcde\n')).toEqual(['abcde']);
});

it('refuses what is no UTF-8, and a long request by its id', () => {
  const bad = Buffer.from([0x22, 0xc3, 0x28, 0x0a]);
  expect(read(100, bad)).toMatchObject([{ refused: { id: null, error: { code: -32_700 } } }]);
  const long = `{"method":"tools/call","params":{"text":"${'x'.repeat(100)}"},"jsonrpc":"2.0","id":"a\\"b"}\n`;
  expect(read(50, long)).toMatchObject([
    { refused: { id: 'a"b', error: { code: -32_600, message: expect.stringContaining('50 bytes') } } },
  ]);
});
