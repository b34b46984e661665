import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { withThoughtsApart } from '../../../src/providers/shared/stream-transforms.ts';
import { finish, modelInfo, scriptedConnection, text } from '../../models/scripted-model.ts';

const start: LanguageModelV4StreamPart = { type: 'text-start', id: '0' };
const end: LanguageModelV4StreamPart = { type: 'text-end', id: '0' };

async function told(pieces: string[], closed = true) {
  const { connection } = scriptedConnection([[start, ...pieces.map(text), ...(closed ? [end, finish()] : [])]]);
  const model = withThoughtsApart(connection.languageModel(modelInfo()));
  const { stream } = await model.doStream({ prompt: [] });
  const parts: LanguageModelV4StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  const joined = (type: 'text-delta' | 'reasoning-delta') =>
    parts.map(part => (part.type === type ? part.delta : '')).join('');
  return { text: joined('text-delta'), thoughts: joined('reasoning-delta'), types: parts.map(({ type }) => type) };
}

describe('withThoughtsApart', () => {
  it('tells what stands in the tags as reasoning, wherever the pieces were cut', async () => {
    const answer = '\n<think>\na < b </thin so\n</think>\n\nThe answer is <think>4</think>.';
    for (let size = 1; size <= answer.length; size++) {
      const pieces = answer.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? [];
      const { text: said, thoughts, types } = await told(pieces);
      expect(said).toBe('The answer is <think>4</think>.');
      expect(thoughts).toBe('\na < b </thin so\n');
      expect(types.filter(type => /reasoning-(start|end)/.test(type))).toEqual(['reasoning-start', 'reasoning-end']);
    }
  });

  it.each(['Hello <think>', '<thinking> aloud', '<', ' \n x', '  ', '<thin'])('leaves %j as it is', async answer => {
    expect(await told(Array.from(answer))).toMatchObject({ text: answer, thoughts: '' });
  });

  it('does not keep white space back that may never end', async () => {
    const { text: said, thoughts } = await told([' '.repeat(2_000), '<think>late</think>']);
    expect([said.length, thoughts]).toEqual([2_019, '']);
  });

  it('ends thoughts that were cut off, so that there is no answer', async () => {
    const { text: said, thoughts, types } = await told(['<think>', 'on and on </th']);
    expect([said, thoughts]).toEqual(['', 'on and on </th']);
    expect(types.at(-1)).toBe('finish');
    expect((await told(['<think>never'], false)).thoughts).toBe('never');
  });
});
