import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AppEvent } from '../../src/core/events.ts';
import { type Message, type SaidPart, tailHeading } from '../../src/core/message.ts';
import type { Candidate, ModelInfo } from '../../src/core/model.ts';
import type { ModelQuestion } from '../../src/models/ask-model.ts';
import { createAskModel } from '../../src/models/call/call.ts';
import { configureProviders, createConnections } from '../../src/models/catalogue/connections.ts';
import type { ProviderDefinition, ProviderSettings } from '../../src/models/provider.ts';
import { manualClock } from '../support/clock.ts';
import {
  type BrokenStep,
  type FakeVendor,
  type FakeVendorOptions,
  multibyteAnswer,
  type StatusStep,
} from '../support/vendors/fake-vendor.ts';
import { recordedErrorsOf } from '../support/vendors/recorded-errors.ts';
import { waitedTime } from '../support/waited-time.ts';

export interface ProviderCase {
  name: string;
  definition: ProviderDefinition;
  start(options?: FakeVendorOptions): Promise<FakeVendor>;
  settings(url: string, key?: string): ProviderSettings;
  /** A model that reasons and sees. */
  model: ModelInfo;
  path: string;
  headers: Record<string, string>;
  /** What the body of the plain question must hold. */
  body: object;
  /** Asked-for thinking, and what the vendor must be told. */
  thinking: { ask: Partial<Candidate>; body: object }[];
  /** Where the vendor wants an image of these bytes. */
  imageBody(base64: string): object;
  /** Roles on the wire for system text, question and tail. */
  roles: string[];
  /** Tokens that the vendor tells beside those of input and output; `cacheRead` and `reasoning` unless they are false. */
  tells: { cacheWrite: boolean; cacheRead?: boolean; reasoning?: boolean };
  /** Ends other than the usual one that the vendor tells; default both. */
  finishes?: readonly ('length' | 'content_filter')[];
  /** Whether the vendor wants the ends of cached stretches marked. */
  marks: boolean;
  /** The environment variable of the key. */
  keyName: string;
  /** The vendor has no list of its models. */
  unlisted?: boolean;
  /** The path names the model and asks for a stream; elsewhere the body does. */
  modelInPath?: boolean;
  /** How the body tells a temperature of 0.4 beside thinking; absent where the vendor refuses it. */
  temperature?: object;
}

/** Small enough for tests, large enough for a busy machine. */
const limits = { firstByteMs: 1500, idleMs: 500, totalMs: 8000 };
const short = { firstByteMs: 250, idleMs: 200, totalMs: 600 };

const say = (role: Message['role'], text: string, more: Partial<Message> = {}): Message => ({
  role,
  section: role === 'system' ? 'preamble' : 'turn',
  parts: [{ type: 'text', text }],
  ...more,
});
const tail = say('user', `${tailHeading}\nAnswer in one line.`, { section: 'tail' });
const plain = [say('system', 'You are careful.', { cacheMark: true }), say('user', 'What is this?'), tail];

const nameOf = ({ model, effort, thinkingBudget }: Partial<Candidate>) =>
  [model?.id, effort, thinkingBudget].filter(word => word !== undefined).join(' ');

/**
 * Stands still while vendors answer, so that no limit runs out by accident; sleeps take no time and are kept. A test moves
 * it on when it wants a limit to run out.
 */
function suiteClock() {
  const clock = manualClock();
  const slept: number[] = [];
  return {
    ...clock,
    slept,
    async sleep(ms: number, signal?: AbortSignal) {
      signal?.throwIfAborted();
      slept.push(ms);
      await clock.advance(ms);
    },
  };
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

/** What every provider must do, proven against a vendor that speaks the documented wire format over real HTTP. */
export function providerSuite(provider: ProviderCase): void {
  describe(`provider ${provider.name}`, () => {
    let vendor: FakeVendor;
    let events: AppEvent[];
    let clock: ReturnType<typeof suiteClock>;
    /** Pieces of text and thoughts that came in all attempts. */
    let progress: number;

    beforeEach(async () => {
      vendor = await provider.start();
      events = [];
      clock = suiteClock();
      progress = 0;
    });
    afterEach(async () => {
      await vendor.close();
    });

    async function open(settings = provider.settings(vendor.url)) {
      const { definition } = provider;
      const connection = createConnections(configureProviders([definition], { [definition.id]: settings }));
      // Loading the package is no part of what is measured here.
      await connection(definition.id);
      const ask = createAskModel({
        connection,
        clock,
        random: { uuid: () => '', fraction: () => 0.01 },
        emit: event => events.push(event),
        isLocal: () => false,
        limits,
        keyName: () => configureProviders([definition], {})[0]?.keyName,
      });
      return (more: Partial<ModelQuestion> = {}, candidate: Partial<Candidate> = {}) =>
        ask({
          reqId: 'r',
          tool: 'chat',
          candidates: [{ model: provider.model, reason: 'test', effort: 'none', ...candidate }],
          messages: plain,
          maxOutputTokens: 2000,
          cacheKey: 'thread-1',
          signal: new AbortController().signal,
          limits,
          onProgress: () => progress++,
          ...more,
        });
    }

    /** Lets the limits run out, once in each attempt, as soon as `stuck` says that nothing more will come. */
    async function runOut<T>(asked: Promise<T>, stuck: () => boolean): Promise<T> {
      let settled = false;
      const settle = () => (settled = true);
      asked.then(settle, settle);
      while (!settled) {
        await expect.poll(() => settled || stuck(), { interval: 2 }).toBe(true);
        await pause(10);
        progress = 0;
        if (!settled) await clock.advance(short.firstByteMs);
        await pause(2);
      }
      return asked;
    }

    const failing = async (more: Partial<ModelQuestion> = {}, settings?: ProviderSettings) => {
      const ask = await open(settings);
      const error = await ask(more).then(
        () => expect.unreachable('the call should fail'),
        thrown => thrown,
      );
      expect(error).toMatchObject({ name: 'AppError' });
      return error;
    };

    const quiet = () => expect.poll(() => vendor.openSockets(), { interval: 2 }).toBe(0);

    describe('asks as the vendor documents it', () => {
      it('at the path, with the headers and the body', async () => {
        vendor.script({ answer: 'It is fine.' });
        const answer = await (await open())();
        expect(answer).toMatchObject({ text: 'It is fine.', partial: false, finish: { kind: 'stop' } });
        const [request] = vendor.requests;
        expect(request?.path).toBe(provider.path);
        expect(request?.headers).toMatchObject(provider.headers);
        const asked = provider.modelInPath ? {} : { model: provider.model.id, stream: true };
        expect(request?.body).toMatchObject({ ...asked, ...provider.body });
        expect(request?.messages.map(({ role }) => role)).toEqual(provider.roles);
        expect(request?.messages.at(-1)?.text).toContain(tailHeading);
        expect(vendor.violations).toEqual([]);
      });

      it.each(provider.thinking.map(thinking => [nameOf(thinking.ask), thinking] as const))(
        'with thinking %s in its own words',
        async (_name, { ask: candidate, body }) => {
          const ask = await open();
          const answer = await ask({ temperature: 0.4 }, candidate);
          expect(vendor.requests[0]?.body).toMatchObject(body);
          if (provider.temperature) {
            expect(vendor.requests[0]?.body).toMatchObject(provider.temperature);
            expect(answer.warnings).toEqual([]);
          } else if (provider.model.reasoning) {
            expect(vendor.requests[0]?.body).not.toHaveProperty('temperature');
            expect(answer.warnings.join()).toMatch(/temperature/i);
          }
          expect(vendor.violations).toEqual([]);
        },
      );

      it('with images', async () => {
        const data = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
        const parts = [
          { type: 'text', text: 'See:' } as const,
          { type: 'image', mediaType: 'image/png', data } as const,
        ];
        await (await open())({ messages: [say('user', '', { parts })] });
        expect(vendor.requests[0]?.body).toMatchObject(provider.imageBody(data.toString('base64')));
        expect(vendor.violations).toEqual([]);
      });

      it('so that the prompt of a growing conversation begins with the one before', async () => {
        const ask = await open();
        const turns: Message[] = [];
        for (let turn = 1; turn <= 6; turn++) {
          turns.push(say('user', `Question ${turn} ${'word '.repeat(400)}`, { cacheMark: true }));
          const answer = await ask({ messages: [plain[0]!, ...turns, tail] });
          turns.push(say('assistant', answer.text));
        }
        const canonical = vendor.requests.map(request => request.canonical);
        for (const [index, text] of canonical.slice(1).entries()) expect(text.startsWith(canonical[index]!)).toBe(true);
        expect(new Set(vendor.requests.map(request => request.parameters)).size).toBe(1);
        const marks = JSON.stringify(vendor.requests.at(-1)?.body).match(/cache_control/g)?.length ?? 0;
        expect(marks).toBe(provider.marks ? 4 : 0);
        expect(vendor.violations).toEqual([]);
      });
    });

    describe('reads what the vendor answers', () => {
      it('in a stream, piece by piece', async () => {
        vendor.script({ answer: 'one two three four five six', chunks: 6, chunkDelayMs: 50 });
        const pieces: string[] = [];
        const answer = await (await open())({ onText: piece => pieces.push(piece) });
        expect(pieces.length).toBeGreaterThan(3);
        expect(pieces.join('')).toBe(answer.text);
      });

      it('with tokens and cache figures', async () => {
        vendor.script({
          answer: 'x',
          usage: { input: 3000, output: 90, reasoning: 40, cacheRead: 2000, cacheWrite: 500 },
        });
        const { usage } = await (await open())();
        expect(usage).toEqual({
          input: 3000,
          output: 90,
          reasoning: provider.tells.reasoning === false ? 0 : 40,
          cacheRead: provider.tells.cacheRead === false ? 0 : 2000,
          cacheWrite: provider.tells.cacheWrite ? 500 : 0,
        });
      });

      it('and profits from its cache when a thread goes on', async () => {
        const ask = await open();
        const long = say('user', 'A line of a file that stays the same. '.repeat(600), { cacheMark: true });
        await ask({ messages: [plain[0]!, long, tail] });
        const { usage } = await ask({
          messages: [plain[0]!, long, say('assistant', 'Answer.'), say('user', 'More?', { cacheMark: true }), tail],
        });
        if (provider.tells.cacheRead === false) expect(usage.cacheRead).toBe(0);
        else expect(usage.cacheRead).toBeGreaterThan(4000);
        expect(usage.input).toBe(vendor.requests[1]?.tokens);
      });

      it.each(provider.finishes ?? (['length', 'content_filter'] as const))('with the finish %s', async finish => {
        vendor.script({ answer: 'As far as it went', finish });
        expect(await (await open())()).toMatchObject({
          text: 'As far as it went',
          partial: false,
          finish: { kind: finish },
          warnings: finish === 'length' ? [] : [expect.stringMatching(/stopped the answer/)],
        });
      });

      // Only chats of OpenAI's shape end so.
      if (provider.path.includes('chat/completions'))
        it('to its end, where `[DONE]` is all that tells of it', async () => {
          const chunk = (delta: object) =>
            `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta }] })}\n\n`;
          const headers = { 'content-type': 'text/event-stream' };
          const body = `${chunk({ role: 'assistant', content: 'All ' })}${chunk({ content: '"finish_reason":"stop"' })}data: [DONE]\n\n`;
          vendor.script({ fault: 'status', status: 200, headers, body });
          const answer = await (await open())();
          expect(answer).toMatchObject({
            text: 'All "finish_reason":"stop"',
            partial: false,
            finish: { kind: 'stop' },
          });
          expect(vendor.requests).toHaveLength(1);
        });

      it.each(['crlf', 'split_utf8', 'comments_first', 'plain_json'] as const)('with %s', async fault => {
        vendor.script({ fault });
        const answer = await (await open())();
        expect(answer).toMatchObject({ text: multibyteAnswer, partial: false, finish: { kind: 'stop' } });
        expect(answer.usage.input).toBe(vendor.requests[0]?.tokens);
        expect(vendor.requests).toHaveLength(1);
      });

      it('alike in events and in one JSON document, with thoughts and calls of tools', async () => {
        const step = {
          answer: 'I look.',
          reasoning: 'Where is it?',
          calls: [{ name: 'look', args: { path: 'a.ts' } }],
        };
        vendor.script(step, { ...step, json: true });
        const ask = await open();
        const inputSchema = { type: 'object' as const, properties: { path: { type: 'string' } } };
        const tools = [{ name: 'look', description: 'Looks.', inputSchema }];
        const effort = provider.model.efforts.find(word => word !== 'none');
        const said = async () => {
          const answer = await ask({ tools }, effort === undefined ? {} : { effort });
          // Ids end with the number of the answer; Gemini's stream seals a text in a part of its own.
          const texts = (part: SaidPart) => (part.type === 'text' ? { type: part.type, text: part.text } : part);
          const parts = answer.said!.map(texts).filter(part => !('text' in part) || part.text !== '');
          const unnumbered = JSON.stringify(parts)
            .replace(/0000000\d/g, 'N')
            .replace(/"id":"[^"]*"/, '"id":"x"');
          return { finish: answer.finish, output: answer.usage.output, said: JSON.parse(unnumbered) };
        };
        const [streamed, whole] = [await said(), await said()];
        expect(streamed.said).toContainEqual(expect.objectContaining({ type: 'call', args: { path: 'a.ts' } }));
        expect(whole).toEqual(streamed);
        expect(vendor.requests).toHaveLength(2);
      });

      const connected = async () => {
        const { definition } = provider;
        return createConnections(configureProviders([definition], { [definition.id]: provider.settings(vendor.url) }))(
          definition.id,
        );
      };
      if (provider.unlisted) {
        it('and has no list of its models', async () => {
          expect((await connected()).list).toBeUndefined();
        });
      } else {
        it('as the live list of its models', async () => {
          await vendor.close();
          vendor = await provider.start({ models: [{ id: provider.model.id }, { id: 'other:tag', window: 50_000 }] });
          const list = await (await connected()).list!(new AbortController().signal);
          expect(list!.map(({ id }) => id)).toEqual([provider.model.id, 'other:tag']);
          expect(vendor.violations).toEqual([]);
        });
      }
    });

    describe('ends once, typed and in time', () => {
      const refusals: [name: string, step: StatusStep, details: object, attempts: number][] = [
        ['400', { fault: 'status', status: 400 }, { class: 'bad_request', retryable: false, status: 400 }, 1],
        ['401', { fault: 'status', status: 401 }, { class: 'auth', retryable: false }, 1],
        ['403', { fault: 'status', status: 403 }, { class: 'auth', retryable: false }, 1],
        ['404', { fault: 'status', status: 404 }, { class: 'bad_request', retryable: false, status: 404 }, 1],
        ['408', { fault: 'status', status: 408 }, { class: 'timeout', retryable: true }, 3],
        ['422', { fault: 'status', status: 422 }, { class: 'bad_request', retryable: false, status: 422 }, 1],
        ['413', { fault: 'status', status: 413 }, { class: 'context_length', retryable: false }, 1],
        ['429', { fault: 'status', status: 429 }, { class: 'rate_limit', retryable: true }, 3],
        ['500', { fault: 'status', status: 500 }, { class: 'bad_upstream', retryable: true }, 3],
        ['502', { fault: 'status', status: 502 }, { class: 'bad_upstream', retryable: true }, 3],
        ['503', { fault: 'status', status: 503 }, { class: 'bad_upstream', retryable: true }, 3],
        ['504', { fault: 'status', status: 504 }, { class: 'timeout', retryable: true }, 3],
        ['529', { fault: 'status', status: 529 }, { class: 'bad_upstream', retryable: true }, 3],
        ['a bare text', { fault: 'status', status: 500, body: 'upstream fell over' }, { class: 'bad_upstream' }, 3],
        ['a page', { fault: 'status', status: 502, body: '<html><h1>Bad</h1></html>' }, { class: 'bad_upstream' }, 3],
        ['an empty body', { fault: 'status', status: 503, body: '' }, { class: 'bad_upstream' }, 3],
        [
          'a vendor that says not to try again',
          { fault: 'status', status: 500, headers: { 'x-should-retry': 'false' } },
          { retryable: false },
          1,
        ],
      ];
      it.each(refusals)('after %s', async (_name, step, details, attempts) => {
        vendor.byDefault(step);
        const error = await failing();
        expect(error).toMatchObject({
          kind: 'model',
          details: { code: 'API_ERROR', provider: provider.definition.id, ...details },
        });
        expect(vendor.requests).toHaveLength(attempts);
        expect(error.message).not.toMatch(/test-key|<html>/);
        expect(error.details.next).toBeTruthy();
        await quiet();
      });

      const recorded = recordedErrorsOf(provider.definition.id);
      it.each(recorded)('at once with $class, $name', async ({ class: kind, step }) => {
        vendor.byDefault(step);
        const error = await failing();
        expect(error.details).toMatchObject({ class: kind, retryable: false, next: expect.stringMatching(/^[A-Z]/) });
        expect(vendor.requests).toHaveLength(1);
        await quiet();
      });

      it('after 402, which no other attempt will mend', async () => {
        vendor.byDefault({ fault: 'status', status: 402 });
        expect((await failing()).details).toMatchObject({
          class: expect.stringMatching(/^(balance|quota)$/),
          retryable: false,
        });
        expect(vendor.requests).toHaveLength(1);
      });

      it('with a wrong key, naming the variable to set and not the key', async () => {
        const error = await failing({}, provider.settings(vendor.url, 'wrong-key-1234567890'));
        expect(error.details).toMatchObject({ class: 'auth', next: expect.stringContaining(provider.keyName) });
        expect(error.message).not.toContain('wrong-key');
      });

      it('with a prompt that is too long for the vendor', async () => {
        await vendor.close();
        vendor = await provider.start({ window: 1000 });
        const error = await failing({ messages: [say('user', 'too many words '.repeat(2000))] });
        expect(error.details).toMatchObject({ class: 'context_length', retryable: false });
      });

      const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1.5s' };
      const waits: [form: string, wait: Partial<StatusStep>, ms: number][] = [
        ['seconds', { headers: { 'retry-after': '1' } }, 1000],
        ['milliseconds', { headers: { 'retry-after-ms': '700' } }, 700],
        ['a date', { headers: { 'retry-after': new Date(manualClock().now() + 2000).toUTCString() } }, 2000],
        ['its body, like Google', { body: { error: { message: 'Slow down.', details: [retryInfo] } } }, 1500],
      ];
      it.each(waits)('and waits as asked in %s', async (_form, wait, ms) => {
        vendor.script({ fault: 'status', status: 429, ...wait }, { answer: 'Now.' });
        expect((await (await open())()).text).toBe('Now.');
        expect(clock.slept).toEqual([ms]);
        expect(events[0]).toMatchObject({ outcome: 'retry', class: 'rate_limit', status: 429, nextInMs: ms });
      });

      it('at once when the vendor asks for longer than the call may take', async () => {
        vendor.script({ fault: 'status', status: 429, headers: { 'retry-after': '600' } });
        expect((await failing()).details).toMatchObject({ class: 'rate_limit', retryAfterSeconds: 600 });
        expect(clock.slept).toEqual([]);
        expect(vendor.requests).toHaveLength(1);
      });

      const hangs: BrokenStep[] = [{ fault: 'hang_before_headers' }, { fault: 'hang_after_headers' }];
      it.each(hangs)('when it hangs: $fault', async step => {
        vendor.byDefault(step);
        const error = await runOut(failing({ limits: short }), () => vendor.openSockets() > 0);
        expect(error.details).toMatchObject({
          class: 'timeout',
          data: { clock: expect.stringMatching(/first_byte|total/) },
        });
        expect(clock.monotonic()).toBeLessThan(short.totalMs + short.firstByteMs);
        await expect(vendor.requests[0]?.aborted).resolves.toBeUndefined();
        await quiet();
      });

      const textless: [BrokenStep, string][] = [
        [{ fault: 'reset' }, 'network'],
        [{ fault: 'garbage' }, 'bad_upstream'],
        [{ fault: 'html' }, 'bad_upstream'],
        [{ fault: 'empty' }, 'bad_upstream'],
        [{ fault: 'json_error' }, 'bad_upstream'],
        [{ fault: 'whitespace_and_comments' }, 'bad_upstream'],
        [{ fault: 'error_in_stream', after: 0 }, 'bad_upstream'],
        [{ fault: 'end_mid_stream', after: 0 }, 'bad_upstream'],
      ];
      it.each(textless)('without any text: %j', async (step, kind) => {
        vendor.byDefault(step);
        const error = await failing();
        expect(error).toMatchObject({ kind: 'model', details: { class: kind, retryable: true } });
        expect(vendor.requests).toHaveLength(3);
        await quiet();
      });

      const midway: BrokenStep[] = [
        { fault: 'hang_mid_stream' },
        { fault: 'slow_drip', answer: 'abcdefghij' },
        { fault: 'cut_mid_stream' },
        { fault: 'end_mid_stream' },
        { fault: 'error_in_stream' },
      ];
      it.each(midway)('with what came before it broke: $fault', async step => {
        vendor.byDefault(step);
        const answer = await runOut((await open())({ limits: short }), () => progress > 0);
        expect(answer).toMatchObject({ partial: true, finish: { kind: 'other' } });
        expect(answer.text.length).toBeGreaterThan(0);
        if (!step.answer) expect(multibyteAnswer.startsWith(answer.text)).toBe(true);
        expect(answer.usage.input).toBeGreaterThan(0);
        await quiet();
      });

      it.each([...textless.map(([step]) => step), ...midway.slice(2)])(
        'and well when only the first attempt broke: $fault',
        async step => {
          vendor.script(step, { answer: 'Whole again.' });
          const answer = await (await open())();
          expect(answer).toMatchObject({
            text: 'Whole again.',
            partial: false,
            attempts: [{ outcome: 'retry' }, { outcome: 'ok' }],
          });
        },
      );

      it.each(midway)('without a second attempt once text was passed on: $fault', async step => {
        vendor.script(step, { answer: 'Another answer.' });
        let passed = '';
        const ask = await open();
        const asked = ask({ limits: { ...short, totalMs: 5000 }, onText: piece => (passed += piece) });
        const answer = await runOut(asked, () => progress > 0);
        expect(answer).toMatchObject({ partial: true, text: passed });
        expect(vendor.requests).toHaveLength(1);
        await quiet();
      });

      it('for blank answers too, which are bought twice at the most', async () => {
        vendor.script({ answer: ' \n ' }, { answer: 'Here.' });
        const ask = await open();
        expect((await ask()).text).toBe('Here.');
        vendor.script({ answer: '' }, { answer: ' ' }, { answer: 'Late.' });
        await expect(ask()).rejects.toMatchObject({ details: { class: 'bad_upstream' } });
        expect(vendor.requests).toHaveLength(4);
      });

      const moments: [string, Parameters<FakeVendor['byDefault']>[0]][] = [
        ['before the headers', { fault: 'hang_before_headers' }],
        ['after the headers', { fault: 'hang_after_headers' }],
        ['in the middle of the answer', { answer: 'word '.repeat(200), chunks: 200, chunkDelayMs: 20 }],
      ];
      it.each(moments)('when the caller gives up %s, with the socket closed', async (_name, step) => {
        vendor.byDefault(step);
        const caller = new AbortController();
        const ask = await open();
        const asked = ask({ signal: caller.signal }).catch(thrown => thrown);
        await expect.poll(() => vendor.requests.length, { interval: 2 }).toBe(1);
        await pause(20);
        const waited = waitedTime();
        caller.abort();
        expect(await asked).toMatchObject({ kind: 'cancelled', details: { code: 'CANCELLED' } });
        expect(waited()).toBeLessThan(250);
        await vendor.requests[0]!.aborted;
        await quiet();
        expect(events.at(-1)).toMatchObject({ outcome: 'cancelled' });
      });
    });
  });
}
