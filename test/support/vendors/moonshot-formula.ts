import { isRecord } from '../../../src/core/json.ts';
import type { BesideAnswer, BesideRequest } from './vendor-kind.ts';
import { recordOf, recordsOf, stringOf } from './wire-values.ts';

type Value = Record<string, unknown>;

/** The platform's search: a function of the chat, whose calls the caller has done as "fibers". */
export interface Formula {
  /** Arguments of the fibers that were run, in their order. */
  ran: string[];
  /** What the platform refuses to tell, or to do. */
  fails?: 'tools' | 'fibers';
  /** Characters of a result. */
  length: number;
  beside(request: BesideRequest): BesideAnswer | undefined;
  /** A call that the model makes now. */
  call(): { id: string; arguments: string };
  isDeclared(tools: readonly Value[]): boolean;
  /** What is wrong with how its calls and their results came back. */
  problem(messages: readonly Value[], tools: readonly Value[]): string | undefined;
}

const root = '/formulas/moonshot/web-search:latest';

const declared = {
  type: 'function',
  function: {
    name: 'web_search',
    description: 'Searches the web',
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: 'What to look for' } },
      required: ['query'],
    },
  },
};

export function createFormula(refuse: (status: number, message: string) => BesideAnswer): Formula {
  /** By the arguments of a call, what it was answered. */
  const results = new Map<string, string>();
  const issued = new Map<string, string>();
  const isDeclared = (tools: readonly Value[]) =>
    tools.some(({ type, function: told }) => {
      const { name, description, parameters } = recordOf(told);
      return JSON.stringify({ type, function: { name, description, parameters } }) === JSON.stringify(declared);
    });
  const self: Formula = {
    ran: [],
    length: 60,
    isDeclared,
    beside({ method, path, bytes }) {
      if (!path.startsWith('/formulas/')) return undefined;
      if (!path.startsWith(`${root}/`)) return refuse(404, 'formula not found');
      if (method === 'GET' && path === `${root}/tools`)
        return self.fails === 'tools' ? refuse(404, 'formula not found') : { status: 200, body: { tools: [declared] } };
      if (method !== 'POST' || path !== `${root}/fibers`) return refuse(404, 'not found');
      const body: unknown = JSON.parse(bytes.toString('utf8'));
      const { name, arguments: given, ...rest } = isRecord(body) ? body : {};
      if (Object.keys(rest).length > 0) return refuse(400, `unknown field ${Object.keys(rest).join()}`);
      if (name !== 'web_search') return refuse(400, `unknown function ${String(name)}`);
      if (![...issued.values()].includes(stringOf(given))) return refuse(400, 'arguments are not those of a call');
      if (self.fails === 'fibers')
        return { status: 200, body: { id: 'fiber-0', object: 'fiber', status: 'failed', error: 'no engine' } };
      self.ran.push(stringOf(given));
      const sealed = `----MOONSHOT ENCRYPTED BEGIN----${String(self.ran.length).padEnd(self.length, '+')}----END----`;
      results.set(stringOf(given), sealed);
      const context = { input: body, encrypted_output: sealed };
      return { status: 200, body: { id: `fiber-${self.ran.length}`, object: 'fiber', status: 'succeeded', context } };
    },
    call() {
      const at = issued.size;
      const call = { id: `web_search:${at}`, arguments: `{ "query":"what is new ${at}"}` };
      issued.set(call.id, call.arguments);
      return call;
    },
    problem(messages, tools) {
      for (const message of messages) {
        for (const call of recordsOf(message.tool_calls)) {
          const { name, arguments: given } = recordOf(call.function);
          if (name !== 'web_search' || !issued.has(stringOf(call.id))) continue;
          if (!isDeclared(tools)) return 'web_search must be declared in every request';
          if (given !== issued.get(stringOf(call.id))) return 'the arguments of a call must be returned as they are';
          const answer = messages.find(each => each.role === 'tool' && each.tool_call_id === call.id);
          const result = results.get(stringOf(given));
          if (!answer) return `tool_call_id ${stringOf(call.id)} has no answer`;
          if (result !== undefined && answer.content !== result) return 'encrypted output must be returned as it is';
        }
      }
      return undefined;
    },
  };
  return self;
}
