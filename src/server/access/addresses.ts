import { BlockList, isIP } from 'node:net';
import { configError } from '../../core/errors.ts';
import { type Refusal, refusalFor } from './caller.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether a name or address can only mean this machine. An empty one and the wildcards mean every network it is on. */
export function isLoopback(host: string): boolean {
  const bare = bareHost(host);
  if (bare === 'localhost' || bare.endsWith('.localhost')) return true;
  const family = isIP(bare);
  return family !== 0 && loopback.check(bare, family === 6 ? 'ipv6' : 'ipv4');
}

/** Lower case, without the brackets of IPv6 and the dot of a full name. */
export function bareHost(host: string): string {
  const lower = host.trim().toLowerCase();
  if (lower.startsWith('[') && lower.endsWith(']')) return lower.slice(1, -1);
  return lower.length > 1 && lower.endsWith('.') ? lower.slice(0, -1) : lower;
}

export interface AddressRules {
  /** What the server was told to listen on; clients may call it by that name. */
  bind: string;
  /** What it listens on. */
  address: string;
  port: number;
  /** Further names that clients call it by, without ports: those of a proxy. */
  hosts: readonly string[];
  /** Web pages that may call, as `https://app.example` with the port where it is not the usual one. */
  origins: readonly string[];
}

const wildcards = new Set(['', '0.0.0.0', '::', '*']);

/** Pages that only this server can have served. `localhost` is two addresses, of which another program may have one. */
function ownPages({ bind, address, port }: Pick<AddressRules, 'bind' | 'address' | 'port'>): Set<string> {
  const named = wildcards.has(bareHost(bind)) || isLoopback(bind) ? [] : [bareHost(bind)];
  const both = address === '::' ? ['::1', 'localhost'] : [];
  const near = wildcards.has(address) ? ['127.0.0.1', ...both] : [address];
  return new Set([...near, ...named].flatMap(name => originOf(`http://${hostOf(name)}:${port}`) ?? []));
}

/** A name or address as it stands in a URL. */
const hostOf = (name: string): string => (name.includes(':') ? `[${name}]` : name);

/** By which URL programs of this machine reach what listens there, without a path. */
export function localUrl(host: string, port: number): string {
  const name = host === '::' ? '::1' : wildcards.has(host) ? '127.0.0.1' : host;
  return `http://${hostOf(name)}:${port}`;
}

/**
 * Refuses requests that a web page sends from a place of its own: by a name that was pointed at this machine (Host), or openly
 * from another site (Origin, and Sec-Fetch-Site where a browser says no Origin). Programs send neither of these.
 */
export function createAddressGuard({ bind, address, port, hosts, origins }: AddressRules) {
  const listed = new Set(hosts.map(bareHost).filter(name => !wildcards.has(name)));
  const own = new Set([bareHost(bind), address, ...listed].filter(name => !wildcards.has(name)));
  const pages = new Set([...ownPages({ bind, address, port }), ...origins.flatMap(page => originOf(page) ?? [])]);
  const isEverywhere = wildcards.has(bareHost(bind));
  // A page can have its own name pointed at this machine, but no address.
  const isAddress = (name: string) => isIP(name) !== 0 && !isLoopback(name) && !wildcards.has(name);
  const isKnown = (name: string) => listed.has(name) || (isEverywhere && isAddress(name));

  /** The page of the very host that was called, an address or one that the operator named; a proxy may say by which scheme. */
  function isCalled(page: string, host: string, scheme: string | undefined): boolean {
    const { protocol, hostname, host: there } = new URL(page);
    if (!isKnown(bareHost(hostname)) || URL.parse(`${protocol}//${host}`)?.host !== there) return false;
    return scheme === undefined || `${scheme.split(',')[0]?.trim().toLowerCase()}:` === protocol;
  }

  return (headers: NodeJS.Dict<readonly string[]>): Refusal | undefined => {
    const { host = [], origin = [], 'x-forwarded-proto': [scheme] = [] } = headers;
    const [called = ''] = host;
    const name = host.length === 1 ? hostNameOf(called) : undefined;
    if (name === undefined || !(isLoopback(name) || own.has(name) || isKnown(name))) return wrongHost;
    const isFrom = (page: string | undefined) =>
      page !== undefined && (pages.has(page) || isCalled(page, called, scheme));
    if (origin.length > 0) return origin.length === 1 && isFrom(originOf(origin[0] ?? '')) ? undefined : wrongOrigin;
    const { 'sec-fetch-site': [site] = [], 'sec-fetch-mode': [mode] = [] } = headers;
    // Whoever follows a link sees what comes; the page that had the link does not.
    if (site === undefined || site === 'none' || mode === 'navigate') return undefined;
    const isSame = site === 'same-origin' && ['http', 'https'].some(each => isFrom(originOf(`${each}://${called}`)));
    return isSame ? undefined : wrongOrigin;
  };
}

/** The name in a Host header; undefined where it is none. */
function hostNameOf(header: string): string | undefined {
  // Credentials, paths and spaces have no place here; what a URL makes of them is not what a proxy would.
  if (!/^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i.test(header)) return undefined;
  return bareHost(header.replace(/:\d{1,5}$/, ''));
}

/** A page's scheme, name and port as browsers write them; undefined for `null` and what is no web page. */
export function originOf(header: string): string | undefined {
  const { protocol, origin } = URL.parse(header) ?? {};
  const isBare = header.toLowerCase().replace(/\/$/, '') === origin || /^https?:\/\/[^/?#@]+:\d+$/i.test(header);
  return (protocol === 'http:' || protocol === 'https:') && isBare ? origin : undefined;
}

const wrongHost = refusalFor(403, 'host', 'The Host header names none of the hosts that this server answers for.', {
  next: 'Call it by the address it listens on, or ask the operator to add the name to POLYLOGUE_HOSTS.',
});

const wrongOrigin = refusalFor(403, 'origin', 'Web pages of this origin may not call this server.', {
  next: 'Ask the operator to add the origin to POLYLOGUE_ORIGINS.',
});

/** Throws where everybody on a network could call without showing who he is. */
export function checkBind({ host, tokens }: { host: string; tokens: number }): void {
  if (tokens > 0 || isLoopback(host)) return;
  throw configError(`Refusing to listen on ${JSON.stringify(host)} without a token: other machines could connect.`, {
    next: 'Set POLYLOGUE_TOKEN (or a file of tokens, POLYLOGUE_TOKENS_FILE), or listen on 127.0.0.1.',
  });
}
