const names = [Symbol.for('undici.globalDispatcher.1'), Symbol.for('undici.globalDispatcher.2')];

export interface Sent {
  origin: string;
  path: string;
}

interface Handler {
  onRequestStart(controller: object): void;
  onResponseStart(controller: object, status: number, headers: Record<string, string>): void;
  onResponseData(controller: object, bytes: Uint8Array): void;
  onResponseEnd(controller: object, trailers: object): void;
}

interface Dispatcher {
  dispatch(options: Sent, handler: Handler): boolean;
}

/** What carries the requests of this process is another one; answers what undoes that. */
export function stubDispatcher(make: (own: Dispatcher) => Dispatcher['dispatch']): () => void {
  // Only the first use of fetch makes one.
  void new Response();
  const before = names.map(name => Reflect.get(globalThis, name));
  const dispatch = make(before.find(Boolean));
  for (const name of names) Reflect.set(globalThis, name, { dispatch });
  return () => {
    for (const [index, name] of names.entries()) Reflect.set(globalThis, name, before[index]);
  };
}

/** Requests are answered by this, and go nowhere. */
export const answerWith = (answer: (url: URL) => { status: number; body: string }): (() => void) =>
  stubDispatcher(() => (options, handler) => {
    const { status, body } = answer(new URL(options.path, options.origin));
    const controller = { abort: () => {}, pause: () => {}, resume: () => {} };
    handler.onRequestStart(controller);
    handler.onResponseStart(controller, status, { 'content-type': 'application/json' });
    handler.onResponseData(controller, Buffer.from(body));
    handler.onResponseEnd(controller, {});
    return true;
  });

/** Requests to this host over https go to another address. */
export const redirectHost = (host: string, address: string): (() => void) =>
  stubDispatcher(own => (options, handler) => {
    if (new URL(options.origin).host !== host) return own.dispatch(options, handler);
    const { origin, pathname } = new URL(address);
    const path = `${pathname.replace(/\/$/, '')}${options.path.replace(/^\/v1/, '')}`;
    return own.dispatch({ ...options, origin, path }, handler);
  });
