import { isAppError } from '../../../core/errors.ts';
import { isRecord } from '../../../core/json.ts';
import type { Caller } from '../../access/caller.ts';
import { readJson } from '../../guards/json-body.ts';
import type { CallerProduct, DoorParts } from '../../http/routes.ts';
import { clientFrame, closeCodes, type HelloFrame, type ServerFrame } from '../../websocket/protocol.ts';
import { issueIn } from './refused-frame.ts';

/** Somebody who said who he is. */
export interface Hello {
  caller: Caller;
  product: CallerProduct;
  frame: HelloFrame;
}

/** What is answered to a bad hello, and the code that the connection is closed with. */
export type BadHello = Pick<Extract<ServerFrame, { op: 'hello_ack' }>, 'error' | 'message'> & { code: number };

/** Reads the first message of a connection; `before` is what was said before it. */
export async function readHello(
  parts: Pick<DoorParts, 'tokens' | 'productOf'>,
  before: { caller: Caller | undefined; root: string | undefined },
  text: string,
): Promise<Hello | BadHello> {
  const json = readJson(text);
  const invalid = { error: 'invalid_hello', code: closeCodes.invalidHello } as const;
  if ('refusal' in json) return { ...invalid, message: json.refusal.message };
  if (!isRecord(json.value) || typeof json.value.op !== 'string') return { ...invalid, message: 'Send a hello first.' };
  if (json.value.op !== 'hello') {
    return { error: 'missing_hello', code: closeCodes.helloMissing, message: 'The first message has to be a hello.' };
  }
  const { data: frame, error } = clientFrame.safeParse(json.value);
  if (frame?.op !== 'hello') return { ...invalid, message: issueIn(error) };
  const caller = callerOf(parts.tokens, before.caller, frame);
  if (!caller) return unauthorized;
  try {
    const product = await parts.productOf(caller, frame.root ?? before.root);
    // It may have been replaced meanwhile.
    return callerOf(parts.tokens, before.caller, frame) ? { caller, frame, product } : unauthorized;
  } catch (problem) {
    if (!isAppError(problem)) throw problem;
    return { ...invalid, message: problem.message };
  }
}

const unauthorized: BadHello = {
  error: 'unauthorized',
  code: closeCodes.unauthorized,
  message: 'Send {"op": "hello", "token": TOKEN} with a token that this server knows.',
};

/** Who says hello. Where the connection said it before, the hello may say nothing else. */
function callerOf(tokens: DoorParts['tokens'], known: Caller | undefined, { token }: HelloFrame): Caller | undefined {
  if (known && (tokens.count() === 0 || !token)) return known;
  const told = tokens.identify(token ? `Bearer ${token}` : undefined);
  if ('status' in told) return undefined;
  return known === undefined || known.name === told.name ? told : undefined;
}
