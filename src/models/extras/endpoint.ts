import { BlockList, isIP } from 'node:net';
import { configError } from '../../core/errors.ts';

/** The base URL of a vendor as it was configured, checked, without the slash at its end. */
export function checkedBaseUrl(value: string, envName: string): string {
  const url = URL.parse(value.trim());
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw refused(envName, 'is no http or https address');
  }
  // fetch refuses such addresses, and they would end up in messages.
  if (url.username !== '' || url.password !== '') throw refused(envName, 'carries a user or password');
  if (url.search !== '' || url.hash !== '') throw refused(envName, 'carries a query or fragment');
  return url.href.replace(/\/+$/, '');
}

function refused(envName: string, problem: string) {
  return configError(`${envName} ${problem}.`, {
    next: `Set ${envName} to the whole base address, version path included, such as http://127.0.0.1:8000/v1.`,
  });
}

const privateNetworks = [
  ['127.0.0.0', 8, 'ipv4'],
  ['10.0.0.0', 8, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['0.0.0.0', 32, 'ipv4'],
  ['::1', 128, 'ipv6'],
  ['fc00::', 7, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
] as const;

function isPrivate(address: string, family: 'ipv4' | 'ipv6'): boolean {
  const ranges = new BlockList();
  for (const [network, prefix, form] of privateNetworks) ranges.addSubnet(network, prefix, form);
  return ranges.check(address, family);
}

/** Whether an address points at this machine or its own network: loopback, private ranges, and names without a public suffix. */
export function isLocalUrl(value: string): boolean {
  const host = URL.parse(value.trim())
    ?.hostname.replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  if (!host) return false;
  // Most are names, and are asked about at the start: what knows all forms of addresses takes its time to be made.
  const family = /^[\d.]+$|:/.test(host) ? isIP(host) : 0;
  if (family !== 0) return isPrivate(host, family === 6 ? 'ipv6' : 'ipv4');
  return !host.includes('.') || /\.(localhost|local|internal|lan|home\.arpa)$/.test(host);
}

/** Addresses of this very machine, as the proxies' exceptions have them: what goes there takes no other way. */
const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

export function isLoopbackUrl(value: string): boolean {
  const host = URL.parse(value.trim())?.hostname;
  return host !== undefined && loopbackHosts.includes(host);
}
