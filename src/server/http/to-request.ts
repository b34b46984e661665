import type { IncomingMessage, ServerResponse } from 'node:http';

/** The address that a request names; undefined for one that is no path, as proxies are asked. */
export function addressOf({ url }: IncomingMessage): URL | undefined {
  if (!url?.startsWith('/')) return undefined;
  return URL.parse(`http://localhost${url}`) ?? undefined;
}

/** A request in the web's form; `body` is what the guards let in. Its signal is aborted when the client is gone. */
export function toRequest(incoming: IncomingMessage, outgoing: ServerResponse, url: URL, body?: Uint8Array): Request {
  const gone = new AbortController();
  const onClose = () => {
    if (!outgoing.writableFinished) gone.abort();
  };
  if (outgoing.closed || outgoing.destroyed) onClose();
  else outgoing.once('close', onClose);
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (typeof value === 'string') headers.set(name, value);
  }
  const { method } = incoming;
  return new Request(url, { method, headers, signal: gone.signal, ...(body && { body: new Uint8Array(body) }) });
}
