import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isRecord } from '../../../src/core/json.ts';
import { o200kTokens } from './o200k-tokens.ts';

/** A server with OpenAI's `POST /embeddings`. */
export interface FakeEmbeddings {
  url: string;
  /** All texts that were sent for a vector, in their order. */
  texts: string[];
  /** What a vendor would refuse. */
  violations: string[];
  /** Answers with this status from now on. */
  fail?: number;
  close(): Promise<void>;
}

const dimensions = 256;
const mostTexts = 2_048;
const mostTokens = { text: 8_192, request: 300_000 };

/** Words of one meaning, as a model would know them. */
const meanings = [
  ['refund', 'reimbursement', 'repay', 'compensation'],
  ['delete', 'remove', 'erase', 'drop', 'forget', 'expire'],
  ['error', 'failure', 'fault', 'exception', 'problem'],
  ['retry', 'again', 'repeat', 'attempt'],
  ['limit', 'cap', 'budget', 'ceiling', 'maximum'],
  ['secret', 'credential', 'password', 'key', 'token'],
  ['hide', 'mask', 'redact', 'conceal'],
  ['picture', 'image', 'photo'],
  ['conversation', 'thread', 'dialogue', 'chat'],
  ['store', 'save', 'persist', 'keep', 'durable', 'database'],
  ['shorten', 'summary', 'summarise', 'compact', 'condense', 'compaction'],
  ['forbid', 'refuse', 'deny', 'reject', 'disallow'],
  ['folder', 'directory'],
  ['price', 'cost', 'money', 'spend'],
  ['stop', 'cancel', 'abort', 'interrupt'],
];

/** A vector in which texts of the same words, parts of words and meanings are near to each other. */
function vectorOf(text: string): number[] {
  const vector = new Array<number>(dimensions).fill(0);
  const add = (feature: string, weight: number) => {
    let hash = 2_166_136_261;
    for (let at = 0; at < feature.length; at++) hash = Math.imul(hash ^ feature.charCodeAt(at), 16_777_619);
    const place = (hash >>> 1) % dimensions;
    vector[place] = (vector[place] ?? 0) + (hash & 1 ? weight : -weight);
  };
  const counts = new Map<string, number>();
  for (const [word] of text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').matchAll(/[\p{L}\p{N}]{3,}/gu)) {
    const folded = word.toLowerCase();
    counts.set(folded, (counts.get(folded) ?? 0) + 1);
  }
  for (const [word, count] of counts) {
    const weight = Math.log(1 + count);
    const group = meanings.findIndex(words => words.some(each => word.startsWith(each)));
    if (group >= 0) add(`meaning ${group}`, weight * 4);
    for (let at = 0; at + 4 <= word.length; at++) add(word.slice(at, at + 4), weight / 2);
    add(word, weight);
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map(value => value / length);
}

/** What is wrong with a request; undefined when nothing is. */
function problemIn(body: unknown): string | undefined {
  if (!isRecord(body)) return 'the body is no object';
  const { model, input, encoding_format: format, ...rest } = body;
  if (typeof model !== 'string' || model === '') return 'you must provide a model parameter';
  const others = Object.keys(rest).filter(name => name !== 'dimensions' && name !== 'user');
  if (others.length > 0) return `Unrecognized request argument supplied: ${others.join(', ')}`;
  if (format !== undefined && format !== 'float') return 'only float is served here';
  const texts: unknown[] = typeof input === 'string' ? [input] : Array.isArray(input) ? input : [];
  if (texts.length === 0 || texts.length > mostTexts) return `input has ${texts.length} texts`;
  let all = 0;
  for (const text of texts) {
    if (typeof text !== 'string' || text === '') return 'input cannot be an empty string';
    const tokens = text.length < mostTokens.text / 4 ? text.length : o200kTokens(text).length;
    if (tokens > mostTokens.text)
      return `a text has ${tokens} tokens; the maximum context length is ${mostTokens.text}`;
    all += tokens;
  }
  return all > mostTokens.request ? `the texts have ${all} tokens` : undefined;
}

export async function startEmbeddings(): Promise<FakeEmbeddings> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const answer = (status: number, body: unknown) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      const refuse = (status: number, message: string) => {
        if (status === 400) self.violations.push(message);
        answer(status, { error: { message, type: 'invalid_request_error', param: null, code: null } });
      };
      if (request.method !== 'POST' || request.url !== '/v1/embeddings') return refuse(400, `no ${request.url}`);
      if (request.headers.authorization !== 'Bearer test-key') return refuse(401, 'Incorrect API key provided');
      if (self.fail !== undefined) return refuse(self.fail, 'The server is overloaded');
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
      const problem = problemIn(body);
      if (problem !== undefined || !isRecord(body)) return refuse(400, problem ?? '');
      const texts = [body.input].flat().map(String);
      self.texts.push(...texts);
      const data = texts.map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text) }));
      const tokens = texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
      // The order of the answer is not promised.
      answer(200, {
        object: 'list',
        data: data.toReversed(),
        model: body.model,
        usage: { prompt_tokens: tokens, total_tokens: tokens },
      });
    });
  });
  const self: FakeEmbeddings = {
    url: '',
    texts: [],
    violations: [],
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = (address as AddressInfo).port;
  self.url = `http://127.0.0.1:${port}/v1`;
  return self;
}
