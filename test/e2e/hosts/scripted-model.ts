import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { json as jsonOfBody } from 'node:stream/consumers';
import { chatWire } from '../../support/vendors/chat-wire.ts';
import { generateWire } from '../../support/vendors/generate-wire.ts';
import { messagesWire } from '../../support/vendors/messages-wire.ts';
import type { Reply } from '../../support/vendors/reply.ts';
import { responsesWire } from '../../support/vendors/responses-wire.ts';
import { serverSentEvents, type Wire } from '../../support/vendors/wire.ts';
import { listOf, recordOf, recordsOf, stringOf } from '../../support/vendors/wire-values.ts';

type Value = Record<string, unknown>;

/** What a host asked its model. */
export interface Asked {
  /** Every tool on offer, under the host's own name for it. */
  tools: string[];
  /** The texts that tools gave so far, the oldest first. */
  results: string[];
  /** All that the user or the host said. */
  said: string;
}

export interface ToolCall {
  /** Our name of the tool. */
  tool: string;
  args: Value;
}

/** What the model does at one of its turns; an empty list ends the session with a text. */
export type Move = (asked: Asked) => readonly ToolCall[];

export interface ScriptedModel {
  /** Without a path. */
  url: string;
  /** Requests of this session that offered a tool of ours. */
  asked: Asked[];
  /** Requests to addresses that it does not know. */
  unknown: string[];
  /**
   * What it does from now on in the session in which this was said; after the last move it says that it is done, as it does in
   * any other: a host that was stopped may live on for a while.
   */
  play(said: string, ...moves: Move[]): void;
  close(): Promise<void>;
}

/** A tool of a server as hosts write it. */
const nameOf = (tool: string) => new RegExp(`(^|[^a-z])polylogue[_.]+${tool}$`);

interface HostWire {
  path: RegExp;
  read(body: Value): Asked;
  write(body: Value, reply: Reply): Wire;
}

const texts = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : recordsOf(content)
        .map(part => stringOf(part.text))
        .join('\n');

/** The interfaces of the hosts' vendors. */
const wires: readonly HostWire[] = [
  {
    path: /\/messages$/,
    read(body) {
      const parts = recordsOf(body.messages).flatMap(({ content }) => recordsOf(content));
      return {
        tools: recordsOf(body.tools).map(({ name }) => stringOf(name)),
        results: parts.filter(({ type }) => type === 'tool_result').map(({ content }) => texts(content)),
        said: recordsOf(body.messages)
          .map(({ content }) => texts(content))
          .join('\n'),
      };
    },
    write: (body, reply) => messagesWire(body, reply, { short: 0, long: 0 }),
  },
  {
    path: /\/responses$/,
    read(body) {
      const items = recordsOf(body.input);
      return {
        tools: recordsOf(body.tools).flatMap(namesOfNamespace),
        results: items.filter(({ type }) => type === 'function_call_output').map(({ output }) => texts(output)),
        said: items.map(({ content }) => texts(content)).join('\n'),
      };
    },
    write: (body, reply) => inNamespaces(body, responsesWire(body, reply)),
  },
  {
    path: /\/chat\/completions$/,
    read(body) {
      const messages = recordsOf(body.messages);
      return {
        tools: recordsOf(body.tools).map(tool => stringOf(recordOf(tool.function).name)),
        results: messages.filter(({ role }) => role === 'tool').map(({ content }) => texts(content)),
        said: messages.map(({ content }) => texts(content)).join('\n'),
      };
    },
    write: chatWire,
  },
  {
    path: /:(stream)?[gG]enerateContent$/,
    read(body) {
      const parts = recordsOf(body.contents).flatMap(content => recordsOf(content.parts));
      return {
        tools: recordsOf(body.tools).flatMap(tool =>
          recordsOf(tool.functionDeclarations).map(({ name }) => stringOf(name)),
        ),
        results: parts.flatMap(({ functionResponse }) =>
          functionResponse === undefined
            ? []
            : [
                Object.values(recordOf(recordOf(functionResponse).response))
                  .map(textOf)
                  .join('\n'),
              ],
        ),
        said: texts(parts),
      };
    },
    write: generateWire,
  },
];

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Codex puts the tools of a server into a namespace. */
function namesOfNamespace({ type, name, tools }: Value): string[] {
  if (type !== 'namespace') return [stringOf(name)];
  return recordsOf(tools).map(tool => `${stringOf(name)}__${stringOf(tool.name)}`);
}

/** A call of a tool in a namespace names both. */
function inNamespaces(body: Value, wire: Wire): Wire {
  const spaces = recordsOf(body.tools).filter(({ type }) => type === 'namespace');
  const divide = (item: unknown): unknown => {
    const call = recordOf(item);
    const space = spaces.find(({ name }) => stringOf(call.name).startsWith(`${stringOf(name)}__`));
    if (call.type !== 'function_call' || !space) return item;
    return { ...call, namespace: space.name, name: stringOf(call.name).slice(stringOf(space.name).length + 2) };
  };
  return {
    ...wire,
    close: () =>
      wire.close().map(({ data, ...frame }) => {
        const value = recordOf(data);
        const response = recordOf(value.response);
        return {
          ...frame,
          data: {
            ...value,
            ...('item' in value && { item: divide(value.item) }),
            ...('response' in value && { response: { ...response, output: listOf(response.output).map(divide) } }),
          },
        };
      }),
  };
}

/** A model on loopback that speaks the wire of whoever asks, and calls our tools as it is told. */
export async function startScriptedModel(): Promise<ScriptedModel> {
  const asked: Asked[] = [];
  const unknown: string[] = [];
  let moves: Move[] = [];
  let session = '';
  let answers = 0;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const wire = wires.find(({ path }) => path.test(pathname));
    if (request.method !== 'POST' || !wire) {
      if (!/count|models|^\/$/i.test(pathname)) unknown.push(`${request.method} ${pathname}`);
      await jsonOfBody(request).catch(() => undefined);
      response.writeHead(/count/i.test(pathname) ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ input_tokens: 1_000, totalTokens: 1_000, error: { message: 'not here' } }));
      return;
    }
    const body = recordOf(await jsonOfBody(request));
    const question = wire.read(body);
    const isOurs = question.tools.some(name => nameOf('chat').test(name)) && question.said.includes(session);
    if (isOurs) asked.push(question);
    const calls = isOurs ? (moves.shift()?.(question) ?? []) : [];
    const reply = replyOf(`${++answers}`, stringOf(body.model), calls, question.tools);
    const frames = wire.write(body, reply);
    const streams = body.stream === true || searchParams.get('alt') === 'sse';
    response.writeHead(200, { 'content-type': streams ? serverSentEvents.contentType : 'application/json' });
    if (!streams) return void response.end(JSON.stringify(frames.whole()));
    const pieces = [...frames.open(), ...reply.chunks.map(piece => frames.text(piece)), ...frames.close()];
    response.end(pieces.map(piece => serverSentEvents.encode(piece)).join(''));
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      unknown.push(String(error));
      response.destroy();
    });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || !address) throw new Error('the scripted model has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    asked,
    unknown,
    play(said, ...next) {
      session = said;
      moves = next;
      asked.length = 0;
    },
    async close() {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

function replyOf(id: string, model: string, calls: readonly ToolCall[], tools: readonly string[]): Reply {
  const text = calls.length === 0 ? 'The session is done.' : '';
  return {
    id,
    model,
    created: 1_700_000_000,
    text,
    chunks: text === '' ? [] : [text],
    reasoning: '',
    finish: 'stop',
    usage: { input: 1_000, output: 10, reasoning: 0, cacheRead: 0, cacheWrite: 0 },
    pages: [],
    calls: calls.map(({ tool, args }, index) => {
      const name = tools.find(candidate => nameOf(tool).test(candidate));
      if (name === undefined) throw new Error(`the host offers no ${tool}: ${tools.join(', ')}`);
      return { id: `call_${id}_${index}`, name, text: JSON.stringify(args), args };
    }),
  };
}
