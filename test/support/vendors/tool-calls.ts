import type { RecordedRequest } from './fake-vendor.ts';
import { recordOf } from './wire-values.ts';

/** A call as a step wants it; `args` as a text is sent as it is, JSON or not, where the wire can. */
export interface CallStep {
  name: string;
  args?: Record<string, unknown> | string;
  /** Default: one of the vendor's form. */
  id?: string;
}

/** A call as a wire sends it. */
export interface FakeCall {
  id: string;
  name: string;
  /** The text of the arguments. */
  text: string;
  args: Record<string, unknown>;
}

export type CallSteps = readonly CallStep[] | ((request: RecordedRequest) => readonly CallStep[]);

/** The calls of an answer, with ids that no other answer has. */
export function callsOf(
  steps: CallSteps | undefined,
  request: RecordedRequest | undefined,
  answer: string,
): FakeCall[] {
  const list = typeof steps === 'function' ? (request ? steps(request) : []) : (steps ?? []);
  return list.map(({ name, args = {}, id }, index) => ({
    id: id ?? `call_${answer}_${index}`,
    name,
    text: typeof args === 'string' ? args : JSON.stringify(args),
    args: typeof args === 'string' ? {} : recordOf(args),
  }));
}

/** A text in pieces as tokens fall; an empty one is one piece. */
export function piecesOf(text: string): string[] {
  const size = Math.max(1, Math.ceil(text.length / 4));
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
  return pieces.length > 0 ? pieces : [''];
}
