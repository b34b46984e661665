import {
  completable,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Era } from '../../../src/server/mcp/mcp.ts';
import { addInputFixtures } from './input-fixtures.ts';
import { addResourceFixtures } from './resource-fixtures.ts';

const codec = createRequestStateCodec<{ round: string }>({ key: 'k'.repeat(32) });
const text = (said: string) => ({ content: [{ type: 'text' as const, text: said }] });
const pause = () => new Promise(resolve => setTimeout(resolve, 50));

/** A pixel, and a silence. */
export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const wav = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

const picture = { type: 'image' as const, data: png, mimeType: 'image/png' };

/** What the conformance suite asks for beyond any server of one's own: for tests alone. */
export function fixtureServer(era: Era): McpServer {
  const server = new McpServer(
    { name: 'fixtures', version: '0.0.0' },
    {
      capabilities: { logging: {}, completions: {}, resources: { subscribe: true } },
      requestState: { verify: codec.verify },
    },
  );
  addContents(server);
  addTalks(server);
  addSchemas(server);
  addInputFixtures(server, codec.mint);
  addResourceFixtures(server);
  if (era === 'legacy') addPushed(server);
  return server;
}

function addContents(server: McpServer): void {
  const says = (name: string, content: () => { content: object[] }) =>
    server.registerTool(name, { description: `The fixture ${name}.` }, () => content() as ReturnType<typeof text>);
  says('test_simple_text', () => text('This is a simple text response for testing.'));
  says('test_image_content', () => ({ content: [picture] }));
  says('test_audio_content', () => ({ content: [{ type: 'audio', data: wav, mimeType: 'audio/wav' }] }));
  const embedded = {
    uri: 'test://embedded-resource',
    mimeType: 'text/plain',
    text: 'This is an embedded resource content.',
  };
  says('test_embedded_resource', () => ({ content: [{ type: 'resource', resource: embedded }] }));
  const mixed = {
    uri: 'test://mixed-content-resource',
    mimeType: 'application/json',
    text: '{"test":"data","value":123}',
  };
  says('test_multiple_content_types', () => ({
    content: [{ type: 'text', text: 'Multiple content types test:' }, picture, { type: 'resource', resource: mixed }],
  }));
  says('test_error_handling', () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
}

function addTalks(server: McpServer): void {
  const { tool } = toolsOf(server);
  tool('test_tool_with_progress', async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined) {
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      }
      await pause();
    }
    return text('Progressed.');
  });
  tool('test_tool_with_logging', async ({ mcpReq }) => {
    for (const said of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await mcpReq.log('info', said);
      await pause();
    }
    return text('Logged.');
  });
  tool('test_logging_tool', async ({ mcpReq }) => {
    await mcpReq.log('info', 'A word.');
    return text('Logged.');
  });
  tool('test_streaming_elicitation', async () => text('Streamed.'));
  tool('test_reconnection', async ({ http }) => {
    http?.closeSSE?.();
    await pause();
    return text('Reconnected.');
  });
  tool('test_missing_capability', async () =>
    inputRequired({
      inputRequests: {
        question: inputRequired.createMessage({
          messages: [{ role: 'user', content: { type: 'text', text: 'Anything?' } }],
          maxTokens: 10,
        }),
      },
    }),
  );
}

function addSchemas(server: McpServer): void {
  const street = { type: 'string' };
  server.registerTool(
    'json_schema_2020_12_tool',
    {
      description: 'Tool with JSON Schema 2020-12 features',
      inputSchema: fromJsonSchema({
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street, city: { type: 'string' } } } },
        properties: {
          name: { type: 'string' },
          address: { $ref: '#/$defs/address' },
          contactMethod: { type: 'string', enum: ['phone', 'email'] },
          phone: { type: 'string' },
          email: { type: 'string' },
        },
        allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
        if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
        // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
        then: { required: ['phone'] },
        else: { required: ['email'] },
        additionalProperties: false,
      }),
    },
    () => text('Valid.'),
  );
  const region = { type: 'string' as const, 'x-mcp-header': 'Region' };
  server.registerTool(
    'test_x_mcp_header',
    {
      description: 'Takes its region from a header too.',
      inputSchema: fromJsonSchema<{ region?: string }>({
        type: 'object',
        properties: { region, query: { type: 'string' } },
      }),
    },
    ({ region }) => text(`Region ${String(region)}.`),
  );
  const word = z.string();
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'A prompt with arguments.',
      argsSchema: z.object({
        arg1: completable(word.describe('First test argument'), () => ['paris', 'park', 'party']),
        arg2: word.describe('Second test argument'),
      }),
    },
    ({ arg1, arg2 }) => ({
      messages: [
        { role: 'user', content: { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` } },
      ],
    }),
  );
}

/** What a 2025 server asks of its client in the middle of a call. */
function addPushed(server: McpServer): void {
  const { tool } = toolsOf(server);
  server.registerTool(
    'test_sampling',
    { description: 'Asks the model of the client.', inputSchema: z.object({ prompt: z.string() }) },
    async ({ prompt }, { mcpReq }) => {
      const content = { type: 'text' as const, text: prompt };
      const { content: said } = await mcpReq.requestSampling({ messages: [{ role: 'user', content }], maxTokens: 100 });
      return text(`LLM response: ${!Array.isArray(said) && said.type === 'text' ? said.text : ''}`);
    },
  );
  const answer = {
    username: { type: 'string', description: 'Your name' },
    email: { type: 'string', description: 'Your address' },
  } as const;
  server.registerTool(
    'test_elicitation',
    { description: 'Asks the user.', inputSchema: z.object({ message: z.string() }) },
    async ({ message }, { mcpReq }) => {
      const required = ['username', 'email'];
      const told = await mcpReq.elicitInput({
        message,
        requestedSchema: { type: 'object', properties: answer, required },
      });
      return text(`User response: action: ${told.action}, content: ${JSON.stringify(told.content)}`);
    },
  );
  tool('test_elicitation_sep1034_defaults', ({ mcpReq }) =>
    elicited(mcpReq, {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    }),
  );
  const options = ['option1', 'option2', 'option3'];
  const titled = ['First', 'Second', 'Third'].map((title, at) => ({
    const: `value${at + 1}`,
    title: `${title} Option`,
  }));
  tool('test_elicitation_sep1330_enums', ({ mcpReq }) =>
    elicited(mcpReq, {
      untitledSingle: { type: 'string', enum: options },
      titledSingle: { type: 'string', oneOf: titled },
      legacyEnum: {
        type: 'string',
        enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'],
      },
      untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
      titledMulti: { type: 'array', items: { anyOf: titled } },
    }),
  );
}

type Asked = Parameters<ServerContext['mcpReq']['elicitInput']>[0];
type Fields = Extract<Asked, { requestedSchema: unknown }>['requestedSchema']['properties'];

async function elicited(mcpReq: ServerContext['mcpReq'], properties: Fields) {
  const { action, content } = await mcpReq.elicitInput({
    message: 'Please fill in.',
    requestedSchema: { type: 'object', properties, required: [] },
  });
  return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`);
}

type Plain = ReturnType<typeof text> | ReturnType<typeof inputRequired>;

/** Tools that take nothing. */
export function toolsOf(server: McpServer) {
  return {
    tool: (name: string, run: (context: ServerContext) => Promise<Plain>) =>
      server.registerTool(name, { description: `The fixture ${name}.` }, run),
  };
}
