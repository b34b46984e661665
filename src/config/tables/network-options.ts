import type { OptionSpec } from '../../core/option.ts';

/** How vendors are reached. */
export const networkOptions = {
  httpsProxy: {
    env: ['HTTPS_PROXY', 'https_proxy'],
    type: 'string',
    doc: 'The proxy that leads to https addresses, such as `http://proxy.example:3128`; unset: none.',
    group: 'Network',
    operatorOnly: true,
  },
  httpProxy: {
    env: ['HTTP_PROXY', 'http_proxy'],
    type: 'string',
    doc: 'The proxy that leads to http addresses; unset: none.',
    group: 'Network',
    operatorOnly: true,
  },
  noProxy: {
    env: ['NO_PROXY', 'no_proxy'],
    type: 'list',
    doc: 'Hosts that are reached without the proxy, such as `.example.org`; this machine always is.',
    group: 'Network',
    operatorOnly: true,
  },
  extraCaCerts: {
    env: ['NODE_EXTRA_CA_CERTS'],
    type: 'path',
    doc: 'A PEM file of further certificate authorities to trust, such as that of a company proxy.',
    group: 'Network',
    operatorOnly: true,
  },
} as const satisfies Record<string, OptionSpec>;
