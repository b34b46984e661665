import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer as bytesOfBody } from 'node:stream/consumers';
import {
  type AnswerStep,
  type BrokenStep,
  type Dialect,
  type FakeVendorOptions,
  multibyteAnswer,
  type RecordedRequest,
} from './fake-vendor.ts';
import { headersOf, type Received, record, watchAbort } from './record.ts';
import type { Refusal } from './refusal.ts';
import { makeReply } from './reply.ts';
import { type Delivery, giveAnswer, giveFault, sendBody } from './serve-step.ts';
import type { Steps } from './steps.ts';
import { callsOf, type FakeCall } from './tool-calls.ts';
import type { AddressFields, VendorKind } from './vendor-kind.ts';
import { maySearch } from './web-search.ts';
import { serverSentEvents } from './wire.ts';

/** All that a running vendor holds. */
export interface VendorState {
  kind: VendorKind;
  options: FakeVendorOptions;
  tokenize: (text: string) => readonly number[];
  steps: Steps;
  requests: RecordedRequest[];
  violations: string[];
  /** Requests so far; makes the ids. */
  arrived: number;
  /** Requests so far that got an answer of a model, sound or broken. */
  answered: number;
  closing: boolean;
  /** Answers under which the fake itself broke the connection. */
  broken: WeakSet<ServerResponse>;
}

/** Reads one request, refuses it as the vendor would, or does with it what the next step says. */
export async function serveRequest(
  state: VendorState,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { kind, steps } = state;
  const id = String(++state.arrived).padStart(8, '0');
  const gone = watchAbort(response, () => state.closing || state.broken.has(response));
  const method = request.method ?? '';
  const path = request.url ?? '';
  const refuse = (refusal: Refusal) => {
    state.violations.push(`${method} ${path}: ${refusal.status} ${refusal.message}`);
    sendBody(response, refusal.status, kind.stamp(refusal.body, id), kind.headers(id));
  };

  const bytes = await bytesOfBody(request);
  const text = bytes.toString('utf8');
  const target = targetOf(kind, method, path);
  if (!target) {
    const unauthorised = kind.beside && kind.authorise(headersOf(request));
    if (unauthorised) return refuse(unauthorised);
    const root = kind.root ?? '/v1';
    const below = path.startsWith(`${root}/`) ? path.slice(root.length) : '';
    const aside = kind.beside?.({ method, path: below, headers: headersOf(request), bytes });
    if (!aside) return refuse(kind.wrongAddress(method, path));
    return sendBody(response, aside.status, aside.body, kind.headers(id));
  }
  const { dialect, address } = target;
  const headers = headersOf(request);
  const received = record({ dialect, path, headers, address, text, gone }, kind, state.tokenize);
  state.requests.push(received.recorded);
  const refusal = refusalOf(state, dialect, received, text);
  if (refusal) return refuse(refusal);

  const step = steps.next(received.recorded);
  if ('fault' in step && step.fault === 'status') {
    const body = step.body === undefined ? kind.stamp(kind.statusBody(step.status), id) : step.body;
    return sendBody(response, step.status, body, { ...kind.headers(id), ...step.headers });
  }
  const delivery = {
    response,
    headers: kind.headers(id),
    framing: kind.framing ?? serverSentEvents,
    failure: { status: 500, body: kind.stamp(kind.statusBody(500), id) },
    breaking: () => void state.broken.add(response),
    ...contentOf(state, received, step, id),
  };
  return 'fault' in step ? giveFault(delivery, step) : giveAnswer(delivery, step);
}

function targetOf(
  kind: VendorKind,
  method: string,
  path: string,
): { dialect: Dialect; address: AddressFields } | undefined {
  const root = kind.root ?? '/v1';
  const { pathname, search } = new URL(path, 'http://localhost');
  if (!pathname.startsWith(`${root}/`)) return undefined;
  const below = pathname.slice(root.length);
  const { route, fields } = kind.readAddress?.(below + search) ?? { route: below, fields: {} };
  const dialect = kind.routes[`${method} ${route}`];
  return dialect && { dialect, address: fields };
}

function refusalOf(
  { kind, options }: VendorState,
  dialect: Dialect,
  { recorded, asked }: Received,
  text: string,
): Refusal | undefined {
  const unauthorised = kind.authorise(recorded.headers);
  if (unauthorised) return unauthorised;
  if (dialect === 'models') return kind.checkListing?.(options.models ?? [], recorded.body);
  if (!asked) return kind.tooLarge?.(text.length) ?? kind.badJson();
  const { body, address, reading } = asked;
  const unsound =
    kind.tooLarge?.(text.length) ??
    (dialect === 'count' ? kind.count?.check(body, address) : kind.check(dialect, body, recorded.headers, address));
  if (unsound) return unsound;
  const model = options.models?.find(({ id }) => id === reading.model);
  if (options.models && !model) return kind.unknownModel(reading.model);
  if (dialect === 'count') return undefined;
  const window = Math.min(
    ...[model?.window, options.window, reading.window].map(most => most ?? Number.POSITIVE_INFINITY),
  );
  return recorded.tokens > window ? kind.tooLong(dialect, recorded.tokens, window) : undefined;
}

function contentOf(
  state: VendorState,
  { recorded, asked }: Received,
  step: AnswerStep | BrokenStep,
  id: string,
): Pick<Delivery, 'wire' | 'reply' | 'stream'> {
  const { kind, options } = state;
  const created = Math.floor(recorded.at / 1_000);
  if (recorded.dialect === 'models' || !asked) {
    const nothing = { id, model: '', created, text: '', input: 0, cacheRead: 0, cacheWrite: 0 };
    const { searchParams } = new URL(recorded.path, 'http://localhost');
    const listing = kind.listing(options.models ?? [], searchParams, recorded.body);
    const wire = { open: () => [], text: () => ({ data: '' }), close: () => [], fail: () => [], whole: () => listing };
    return { wire, reply: makeReply(step, nothing), stream: false };
  }
  const { body, address, reading, segments } = asked;
  if (recorded.dialect === 'count') {
    const counted = kind.count?.answer(recorded.tokens) ?? {};
    const wire = { open: () => [], text: () => ({ data: '' }), close: () => [], fail: () => [], whole: () => counted };
    const nothing = { id, model: reading.model, created, text: '', input: 0, cacheRead: 0, cacheWrite: 0 };
    return { wire, reply: makeReply(step, nothing), stream: false };
  }
  const offered = Array.isArray(body.tools) && body.tools.length > 0;
  const calls = 'fault' in step || !offered ? [] : callsOf(step.calls, recorded, id);
  const use = kind.cache(recorded.dialect, body, segments, address);
  const reply = makeReply(step, {
    id,
    created,
    model: reading.model,
    calls,
    text: textFor(step, recorded, ++state.answered, calls),
    input: recorded.tokens,
    cacheRead: use.read,
    cacheWrite: use.written,
    searches: maySearch(recorded.dialect, body),
    ...(reading.maxOutput !== undefined && { maxOutput: reading.maxOutput }),
  });
  return { wire: use.wire(reply), reply, stream: reading.stream };
}

function textFor(
  step: AnswerStep | BrokenStep,
  request: RecordedRequest,
  number: number,
  calls: readonly FakeCall[],
): string {
  if (calls.length > 0 && step.answer === undefined) return '';
  if (typeof step.answer === 'function') return step.answer(request);
  return step.answer ?? ('fault' in step ? multibyteAnswer : `Answer ${number}.`);
}
