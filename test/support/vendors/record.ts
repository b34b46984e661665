import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRecord } from '../../../src/core/json.ts';
import type { Dialect, RecordedRequest } from './fake-vendor.ts';
import { canonicalForm, plainMessages, type Segment, segmentsOf, tokensIn } from './prompt.ts';
import type { Reading } from './reading.ts';
import type { AddressFields, VendorKind } from './vendor-kind.ts';
import { stableJson } from './wire-values.ts';

/** A request with what the fake made of it. */
export interface Received {
  recorded: RecordedRequest;
  /** Absent for a listing and for a body that is no JSON object. */
  asked?: { body: Record<string, unknown>; address: AddressFields; reading: Reading; segments: Segment[] };
}

export interface Arrival {
  dialect: Dialect;
  path: string;
  headers: Record<string, string>;
  address: AddressFields;
  /** The raw body; empty for a GET. */
  text: string;
  gone: Pick<RecordedRequest, 'aborted' | 'wasAborted'>;
}

export function record(
  { dialect, path, headers, address, text, gone }: Arrival,
  kind: Pick<VendorKind, 'read' | 'count'>,
  tokenize: (text: string) => readonly number[],
): Received {
  const body = text === '' ? undefined : parsed(text);
  const base = { dialect, path, headers, body, at: performance.now(), ...gone };
  const read = readerOf(dialect, kind);
  if (!read || !isRecord(body))
    return { recorded: { ...base, canonical: '', tokens: 0, messages: [], parameters: '{}' } };
  const reading = read(body, address);
  const segments = segmentsOf(reading.prompt, tokenize);
  const recorded = {
    ...base,
    canonical: canonicalForm(reading.prompt),
    tokens: tokensIn(segments),
    messages: plainMessages(reading.prompt),
    parameters: stableJson(reading.parameters),
  };
  return { recorded, asked: { body, address, reading, segments } };
}

function readerOf(
  dialect: Dialect,
  kind: Pick<VendorKind, 'read' | 'count'>,
): ((body: Record<string, unknown>, address: AddressFields) => Reading) | undefined {
  if (dialect === 'models') return undefined;
  return dialect === 'count' ? kind.count?.read : (body, address) => kind.read(dialect, body, address);
}

/** The parsed JSON, or the text when it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The fake records what came and refuses it later.
    return text;
  }
}

export function headersOf(request: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  );
}

/** Watches for a client that closes the connection before its answer is finished. */
export function watchAbort(response: ServerResponse, ours: () => boolean): Arrival['gone'] {
  let gone = false;
  const aborted = new Promise<void>(resolve => {
    response.once('close', () => {
      if (response.writableFinished || ours()) return;
      gone = true;
      resolve();
    });
  });
  return { aborted, wasAborted: () => gone };
}
