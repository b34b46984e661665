import { describe, expect, it } from 'vitest';
import type { Message } from '../../src/core/message.ts';
import { minimax } from '../../src/providers/minimax.ts';
import { askProvider, providerAsker } from '../contracts/ask-provider.ts';
import { providerSuite } from '../contracts/provider-suite.ts';
import { catalogueModel } from '../models/catalogue-model.ts';
import { say } from '../models/scripted-model.ts';
import { startMinimax } from '../support/vendors/start-minimax.ts';
import { startMinimaxChat } from '../support/vendors/start-minimax-chat.ts';

const m3 = catalogueModel('minimax', 'MiniMax-M3');
const weighed = catalogueModel('minimax', 'MiniMax-M3.1-Flash');
const always = catalogueModel('minimax', 'MiniMax-M2.7');
const tailPart = { type: 'text', text: expect.stringContaining('WHAT TO DO NOW') };

providerSuite({
  name: 'minimax (like Anthropic)',
  definition: minimax,
  start: startMinimax,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  model: m3,
  path: '/anthropic/v1/messages',
  headers: { 'x-api-key': 'test-key', authorization: 'Bearer test-key', 'anthropic-version': '2023-06-01' },
  body: {
    max_tokens: 2000,
    thinking: { type: 'disabled' },
    system: [{ type: 'text', text: 'You are careful.', cache_control: { type: 'ephemeral' } }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, tailPart] }],
  },
  thinking: [
    { ask: { effort: 'low' }, body: { thinking: { type: 'adaptive' } } },
    {
      ask: { model: weighed, effort: 'xhigh' },
      body: { thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } },
    },
    {
      ask: { model: weighed, effort: 'none' },
      body: { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
    },
  ],
  imageBody: base64 => ({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } },
        ],
      },
    ],
  }),
  roles: ['system', 'user'],
  tells: { cacheWrite: true, reasoning: false },
  marks: true,
  keyName: 'MINIMAX_API_KEY',
});

providerSuite({
  name: 'minimax (like OpenAI)',
  definition: minimax,
  start: startMinimaxChat,
  settings: (baseUrl, apiKey = 'test-key') => ({ apiKey, baseUrl }),
  model: m3,
  path: '/v1/chat/completions',
  headers: { authorization: 'Bearer test-key' },
  body: {
    max_completion_tokens: 2000,
    thinking: { type: 'disabled' },
    messages: [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: expect.stringMatching(/^What is this\?\n\n[\s\S]*WHAT TO DO NOW/) },
    ],
  },
  thinking: [
    { ask: { effort: 'high' }, body: { thinking: { type: 'adaptive' } } },
    { ask: { model: weighed, effort: 'max' }, body: { thinking: { type: 'adaptive' }, reasoning_effort: 'max' } },
  ],
  temperature: { temperature: 0.4 },
  imageBody: base64 => ({
    messages: [
      {
        role: 'user',
        content: [{ type: 'text' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }],
      },
    ],
  }),
  roles: ['system', 'user'],
  tells: { cacheWrite: false },
  marks: false,
  keyName: 'MINIMAX_API_KEY',
});

describe('minimax', () => {
  it('keeps thoughts out of the answer, whichever way it is asked', async () => {
    for (const start of [startMinimax, startMinimaxChat]) {
      const vendor = await start();
      try {
        vendor.script({ answer: 'Forty-two.', reasoning: 'Six times seven.' });
        const settings = { apiKey: 'test-key', baseUrl: vendor.url };
        expect((await askProvider(minimax, settings, weighed, { effort: 'low' })).text).toBe('Forty-two.');
        expect(vendor.violations).toEqual([]);
      } finally {
        await vendor.close();
      }
    }
  });

  it('gets its thoughts back with the calls that they led to, as it wrote them', async () => {
    const thinking = { type: 'thinking', thinking: 'Where?', signature: expect.any(String) };
    const cases = [
      [startMinimax, [thinking, { type: 'text', text: 'I look.' }, { type: 'tool_use', name: 'look' }]],
      [startMinimaxChat, '<think>\nWhere?\n</think>\n\nI look.'],
    ] as const;
    const tools = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' as const } }];
    for (const [start, content] of cases) {
      const vendor = await start();
      try {
        const calls = [{ name: 'look', args: {} }];
        vendor.script({ answer: 'I look.', calls, reasoning: 'Where?' }, { answer: 'There.' });
        const ask = await providerAsker(minimax, { apiKey: 'test-key', baseUrl: vendor.url });
        const { said = [] } = await ask(m3, { tools, effort: 'high' });
        const results = said.flatMap(part =>
          part.type === 'call' ? [{ id: part.id, name: part.name, text: 'There.' }] : [],
        );
        const messages: Message[] = [
          say('user', 'Where is it?'),
          { role: 'assistant', section: 'turn', parts: [], said },
          { role: 'user', section: 'turn', parts: [], results },
        ];
        await ask(m3, { tools, effort: 'high', messages });
        expect(vendor.requests[1]?.body).toMatchObject({ messages: [{}, { role: 'assistant', content }, {}] });
        expect(vendor.violations).toEqual([]);
      } finally {
        await vendor.close();
      }
    }
  });

  it('is shown no thought that Anthropic signed, though both packages keep signatures under one name', async () => {
    const vendor = await startMinimax();
    try {
      const signed = { anthropic: { signature: 'of Claude' } };
      const call = { type: 'call', id: 'c1', name: 'look', args: {} } as const;
      const said = [{ type: 'thought', text: 'Where?', vendor: signed }, call] as const;
      const tools = [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' as const } }];
      vendor.script({ calls: [{ name: 'look', args: {} }], reasoning: 'Here?' });
      const answer = await askProvider(minimax, { apiKey: 'test-key', baseUrl: vendor.url }, m3, {
        effort: 'high',
        tools,
        messages: [
          say('user', 'Where is it?'),
          { role: 'assistant', section: 'turn', parts: [], said },
          { role: 'user', section: 'turn', parts: [], results: [{ id: 'c1', name: 'look', text: 'There.' }] },
        ],
      });
      const [, asked] = Object(vendor.requests[0]?.body).messages;
      expect(asked.content).toMatchObject([{ type: 'tool_use', name: 'look' }]);
      expect(answer.said?.[0]).toEqual({
        type: 'thought',
        text: 'Here?',
        vendor: { minimax: { signature: expect.any(String) } },
      });
    } finally {
      await vendor.close();
    }
  });

  it('says nothing of thinking to models that think as they like, and keeps temperatures in its range', async () => {
    const vendor = await startMinimax();
    try {
      const settings = { apiKey: 'test-key', baseUrl: vendor.url };
      await askProvider(minimax, settings, always, { effort: 'high', temperature: 0 });
      await askProvider(minimax, settings, always, { temperature: 1.5 });
      expect(vendor.requests.map(({ body }) => body)).toMatchObject([{ temperature: 0.01 }, { temperature: 1 }]);
      expect(vendor.requests[0]?.body).not.toHaveProperty('thinking');
      expect(vendor.violations).toEqual([]);
    } finally {
      await vendor.close();
    }
  });

  it('takes what it says went wrong under a 200 for what it is', async () => {
    const vendor = await startMinimaxChat();
    const cases = [
      [1002, 'rate_limit'],
      [1004, 'auth'],
      [1008, 'balance'],
      [2013, 'bad_request'],
      [1000, 'bad_upstream'],
    ] as const;
    try {
      for (const [code, kind] of cases) {
        const body = { base_resp: { status_code: code, status_msg: 'in its own words' } };
        vendor.byDefault({ fault: 'status', status: 200, body });
        const asked = askProvider(minimax, { apiKey: 'test-key', baseUrl: vendor.url }, m3);
        await expect(asked).rejects.toMatchObject({
          details: { class: kind },
          message: expect.stringContaining('in its own words'),
        });
      }
    } finally {
      await vendor.close();
    }
  });
});
