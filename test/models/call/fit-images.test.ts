import { describe, expect, it } from 'vitest';
import type { Message, Part } from '../../../src/core/message.ts';
import { fitImages } from '../../../src/models/call/repair-history.ts';
import { modelInfo, say } from '../scripted-model.ts';

const image = (bytes: number): Part => ({ type: 'image', mediaType: 'image/png', data: new Uint8Array(bytes) });
const turn = (text: string, ...images: Part[]): Message => ({
  role: 'user',
  section: 'turn',
  parts: [{ type: 'text', text }, ...images],
});
const sizes = (messages: readonly Message[]) =>
  messages.map(({ parts }) => parts.flatMap(part => (part.type === 'image' ? [part.data.length] : [])));
const limits = { max: 3, bytes: 4_000, allBytes: 8_000 };
const model = modelInfo({ provider: 'acme', id: 'sees', input: ['text', 'image'] });

describe('images of a long thread', () => {
  it('stay as they are while the vendor takes them all, and messages too', () => {
    const messages = [
      say('system', 'S'),
      turn('a', image(300)),
      say('assistant', 'b'),
      turn('c', image(600), image(900)),
    ];
    const fitted = fitImages(messages, model, limits);
    expect(fitted).toEqual({ messages, warnings: [] });
    expect(fitted.messages[0]).toBe(messages[0]);
  });

  it('are the newest where they are too many, with a word where the others stood', () => {
    const messages = [turn('a', image(3), image(6)), turn('b', image(9)), turn('c', image(12), image(15))];
    const { messages: fitted, warnings } = fitImages(messages, model, limits);
    expect(sizes(fitted)).toEqual([[], [9], [12, 15]]);
    expect(fitted[0]?.parts.map(({ type }) => type)).toEqual(['text', 'text', 'text']);
    expect(warnings).toEqual(['Older images left out: 2. acme:sees takes 3 in one request, and not all sizes.']);
  });

  it('are the newest where they are too much together, and none is skipped for an older one', () => {
    const messages = [turn('a', image(3)), turn('b', image(3_000)), turn('c', image(2_700))];
    expect(sizes(fitImages(messages, model, { ...limits, allBytes: 7_000 }).messages)).toEqual([[], [], [2_700]]);
  });

  it('are left out where one is too large, however few there are', () => {
    const { messages, warnings } = fitImages([turn('a', image(3), image(3_100))], model, limits);
    expect(sizes(messages)).toEqual([[3]]);
    expect(warnings).toEqual(['Images left out as too large: 1. acme:sees takes 0.0 MB at the most.']);
  });

  it('are left out where the vendor does not take their type, and named with what it takes', () => {
    const gif: Part = { type: 'image', mediaType: 'image/gif', data: new Uint8Array(6) };
    const few = { ...limits, types: ['image/png', 'image/jpeg'] };
    const { messages, warnings } = fitImages([turn('a', image(3), gif, gif)], model, few);
    expect(sizes(messages)).toEqual([[3]]);
    expect(warnings).toEqual(['Images left out: 2 (GIF). acme:sees takes PNG, JPEG only; convert them.']);
    expect(sizes(fitImages([turn('a', image(3), gif)], model, limits).messages)).toEqual([[3, 6]]);
  });
});
