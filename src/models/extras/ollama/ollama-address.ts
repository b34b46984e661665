import { checkedBaseUrl } from '../endpoint.ts';

const ownPort = 11_434;

/**
 * The base of an Ollama server's interface from what OLLAMA_HOST may hold: a host, `host:port`, `:port` or a whole address.
 * The address that a server listens on everywhere stands for this machine.
 */
export function ollamaAddress(value: string): string {
  const text = value.trim().replace(/^["']+|["']+$/g, '');
  const url = new URL(checkedBaseUrl(/^[a-z]+:\/\//i.test(text) ? text : withPort(text), 'OLLAMA_HOST'));
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  const path = url.pathname.replace(/\/+$/, '').replace(/\/(api|v1)$/, '');
  return `${url.origin}${path}/api`;
}

function withPort(text: string): string {
  const [, authority = '', path = ''] = /^([^/]*)(.*)$/s.exec(text) ?? [];
  const bare = (authority.match(/:/g)?.length ?? 0) > 1 && !authority.startsWith('[');
  const host = bare ? `[${authority}]` : authority.replace(/^(?=:)/, '127.0.0.1');
  return `http://${/:\d+$/.test(host) && !bare ? host : `${host}:${ownPort}`}${path}`;
}
