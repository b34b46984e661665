import { describe, expect, it } from 'vitest';
import { mapMessage, type SaidPart } from '../../src/core/message.ts';

const masked = async (text: string) => text.replaceAll('hunter2', '[masked]');
const mapped = async (said: SaidPart[]) =>
  (await mapMessage({ role: 'assistant', section: 'turn', parts: [], said }, masked)).said;
const repeated = { openrouter: { reasoning_details: [{ type: 'reasoning.text', text: 'It is hunter2.' }] } };
const call = { type: 'call', id: 'c', name: 'read', args: { word: 'hunter2' } } as const;

describe('mapMessage', () => {
  it('leaves no thought in the clear where its vendor repeats it beside other pieces', async () => {
    const said = await mapped([
      { type: 'thought', text: 'It is hunter2.', vendor: repeated },
      { type: 'text', text: 'I look.', vendor: repeated },
      { ...call, vendor: repeated },
    ]);
    expect(said).toEqual([
      { type: 'thought', text: 'It is [masked].', vendor: {} },
      { type: 'text', text: 'I look.', vendor: {} },
      { ...call, args: { word: '[masked]' }, vendor: {} },
    ]);
  });

  it('keeps what a vendor signed otherwise, and marks that say nothing', async () => {
    const signed = { google: { thoughtSignature: 'abc' } };
    expect(
      await mapped([
        { type: 'thought', text: 'It is hunter2.', vendor: { deepseek: {} } },
        { ...call, vendor: signed },
      ]),
    ).toEqual([
      { type: 'thought', text: 'It is [masked].', vendor: { deepseek: {} } },
      { ...call, args: { word: '[masked]' }, vendor: signed },
    ]);
    const whole: SaidPart[] = [{ type: 'thought', text: 'Fine.', vendor: repeated }];
    expect(await mapped(whole)).toEqual(whole);
  });
});
