import { once } from 'node:events';
import { createServer } from 'node:http';
import type { JSONSchema7, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { type ProviderDefinition, plainModel } from '../../../src/models/provider.ts';
import { azure } from '../../../src/providers/azure.ts';
import { custom } from '../../../src/providers/custom.ts';
import { dial } from '../../../src/providers/dial.ts';
import { groq } from '../../../src/providers/groq.ts';
import { minimax } from '../../../src/providers/minimax.ts';
import { moonshot } from '../../../src/providers/moonshot/moonshot.ts';
import { openai } from '../../../src/providers/openai.ts';
import { openrouter } from '../../../src/providers/openrouter.ts';
import { isStrict } from '../../../src/providers/shared/json-schema.ts';
import { zhipu } from '../../../src/providers/zhipu/zhipu.ts';

const prompt: LanguageModelV4Prompt = [{ role: 'user', content: [{ type: 'text', text: 'Which capital?' }] }];
const text: JSONSchema7 = { type: 'string' };
const closed = (properties: Record<string, JSONSchema7>, more: JSONSchema7 = {}): JSONSchema7 => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});
const strict = closed({ city: text, not: { anyOf: [text, { type: 'null' }] } });
const loose = closed({ city: text, country: text }, { required: ['city'] });

/** What a provider's vendor is asked with, of a call that wants JSON by a schema. */
async function bodyOf(definition: ProviderDefinition, schema: JSONSchema7, more: Record<string, string> = {}) {
  let body = '';
  const vendor = createServer((request, response) => {
    request.on('data', piece => {
      body += piece;
    });
    request.once('end', () => response.writeHead(400).end('{}'));
  });
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
  const address = vendor.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const settings = { apiKey: 'test-key', baseUrl: url, apiUrl: url, host: url, endpoint: url, ...more };
  const connection = await definition.connect(settings);
  const model = plainModel({ provider: definition.id, id: 'm', window: 100_000, maxOutput: 8_000, score: 5 });
  const question = { prompt, responseFormat: { type: 'json' as const, schema } };
  await expect(connection.languageModel(model).doStream(question)).rejects.toThrow();
  vendor.close();
  return JSON.parse(body);
}

describe('a schema', () => {
  it.each<[string, JSONSchema7]>([
    ['closed, also below', closed({ a: closed({ b: text }), c: { type: 'array', items: closed({ d: text }) } })],
    ['names that are words elsewhere', closed({ not: text, default: text, allOf: text })],
    ['formats and patterns', closed({ a: { type: 'string', format: 'email', pattern: '^(?:a|b)@' } })],
    ['definitions', closed({ a: { $ref: '#/$defs/a' } }, { $defs: { a: closed({ b: text }) } })],
  ])('is strict: %s', (_name, schema) => {
    expect(isStrict({ prompt, responseFormat: { type: 'json', schema } })).toBe(true);
  });

  it.each<[string, JSONSchema7]>([
    ['an optional property', loose],
    ['other properties', closed({ a: text }, { additionalProperties: text })],
    ['nothing said of other properties', closed({ a: text }, { additionalProperties: undefined })],
    ['an open object in a list', closed({ a: { type: 'array', items: { type: 'object' } } })],
    ['an open object among several', closed({ a: { anyOf: [text, { type: ['object', 'null'] }] } })],
    ['an open definition', closed({ a: { $ref: '#/$defs/a' } }, { $defs: { a: { type: 'object' } } })],
    ['words that are refused', closed({ a: { oneOf: [text, { type: 'null' }] } })],
    ['a default', closed({ a: { type: 'string', default: 'x' } })],
    ['a format that is unknown there', closed({ a: { type: 'string', format: 'uri' } })],
    ['a pattern that looks ahead', closed({ a: { type: 'string', pattern: '^(?!x)y$' } })],
    ['a pattern that looks behind', closed({ a: { type: 'string', pattern: '(?<=x)y' } })],
    ['words next to a reference', closed({ a: { $ref: '#/$defs/a', description: 'A' } }, { $defs: { a: text } })],
  ])('is not strict: %s', (_name, schema) => {
    expect(isStrict({ prompt, responseFormat: { type: 'json', schema } })).toBe(false);
  });
});

describe('an answer by a schema', () => {
  it.each<[string, ProviderDefinition, Record<string, string>]>([
    ['openai', openai, { apiStyle: 'responses' }],
    ['openai, chat', openai, { apiStyle: 'chat' }],
    ['azure', azure, {}],
    ['groq', groq, {}],
    ['openrouter', openrouter, {}],
    ['custom', custom, {}],
  ])('is asked for in the strict way where the schema allows it: %s', async (_name, definition, settings) => {
    const sent = async (schema: JSONSchema7) => {
      const { text: own, response_format: format } = await bodyOf(definition, schema, settings);
      return format?.json_schema ?? own?.format;
    };
    expect(await sent(strict)).toMatchObject({ strict: true, schema: strict });
    expect(await sent(loose)).toMatchObject({ strict: false, schema: loose });
  });

  it.each([moonshot, zhipu, dial, minimax])(
    'is asked for in words where there is no parameter: $id',
    async definition => {
      const { messages, response_format: format } = await bodyOf(definition, loose);
      expect(format).toEqual({ type: 'json_object' });
      expect(messages[0]).toEqual({ role: 'system', content: expect.stringContaining(JSON.stringify(loose)) });
      expect(messages[1]).toMatchObject({ role: 'user' });
    },
  );
});
