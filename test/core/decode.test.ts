import { randomFillSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { decodeText } from '../../src/core/text.ts';

const be = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16();

describe('decodeText', () => {
  it.each([
    ['UTF-8', Buffer.from('né 𝄞\n'), 'né 𝄞\n'],
    ['UTF-8 with a mark', Buffer.from('\ufeffné\n'), 'né\n'],
    ['UTF-16 little-endian', Buffer.from('\ufeffné 𝄞\n', 'utf16le'), 'né 𝄞\n'],
    ['UTF-16 big-endian', be('né 𝄞\n'), 'né 𝄞\n'],
    ['Windows-1252', Buffer.from('caf\xe9 au lait, s\xfcss und gut\n', 'latin1'), 'café au lait, süss und gut\n'],
    ['DOS line ends', Buffer.from('a\r\nb\rc\n'), 'a\nb\nc\n'],
    ['terminal colours', Buffer.from('\x1b[31mred\x1b[0m\n'), '\x1b[31mred\x1b[0m\n'],
    ['nothing', Buffer.alloc(0), ''],
  ])('reads %s', (_, bytes, text) => {
    expect(decodeText(bytes)).toBe(text);
  });

  it('replaces a few broken bytes in a text that is UTF-8 otherwise', () => {
    const bytes = Buffer.concat([Buffer.from('é'.repeat(50)), Buffer.from([0xff])]);
    expect(decodeText(bytes)).toBe(`${'é'.repeat(50)}\ufffd`);
  });

  it.each([
    ['a NUL', Buffer.from('text\0text')],
    ['UTF-16 without a mark', Buffer.from('text', 'utf16le')],
    ['UTF-32', Buffer.from([0xff, 0xfe, 0, 0, 0x41, 0, 0, 0])],
    ['control characters', Buffer.from('\x01\x02\x03abc')],
    ['bytes that are no UTF-8', Buffer.from(Array.from({ length: 200 }, (_, at) => 0x80 + (at % 0x40)))],
    ['noise', randomFillSync(Buffer.alloc(4096))],
  ])('takes %s for binary', (_, bytes) => {
    expect(decodeText(bytes)).toBeUndefined();
  });
});
