import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fetchTool, isPublicAddress } from '../../../../../src/engine/modes/agent/local-tools/fetch-tool.ts';
import { ownTime } from '../../../../support/own-time.ts';

let server: Server;
let base: string;
let asked: string[];
beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/inside')
      return void response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end();
    if (request.url === '/loop') return void response.writeHead(302, { location: '/loop' }).end();
    if (request.url === '/image') return void response.writeHead(200, { 'content-type': 'image/png' }).end('x');
    if (request.url === '/slow') {
      const page = `${'<'.repeat(400_000)}${'<script '.repeat(50_000)}${'<script>'.repeat(50_000)}<p>End</p>${'<br'.repeat(100_000)}`;
      return void response.writeHead(200, { 'content-type': 'text/html' }).end(page);
    }
    if (request.url === '/big')
      return void response.writeHead(200, { 'content-type': 'text/plain' }).end('y'.repeat(3_000_000));
    const page =
      '<html><script>evil()</script><p>Fish &amp; chips</p><style>x{}</style><div>It&#8217;s &#x201C;more&#x201d;&nbsp;&unknown; &toString;</div></html>';
    response.writeHead(200, { 'content-type': 'text/html' }).end(page);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => new Promise(resolve => server.close(resolve)));

const around = () => ({ callId: 'c', signal: new AbortController().signal });
/** As if the web were on this machine, but nothing else of it. */
const open = fetchTool({ address: address => address === '127.0.0.1' || isPublicAddress(address), port: () => true });
const real = fetchTool();

describe('a page of the web', () => {
  it('is read as text, as much as is of use', async () => {
    const page = await open.run({ url: `${base}/` }, around());
    expect(page).toMatchObject({
      failed: false,
      text: expect.stringContaining('Fish & chips\nIt’s “more” &unknown; &toString;'),
    });
    expect(JSON.stringify(page)).not.toContain('evil');
    const big = await open.run({ url: `${base}/big` }, around());
    expect(typeof big !== 'string' && big.text.length).toBeLessThan(2_001_000);
    await expect(open.run({ url: `${base}/image` }, around())).rejects.toMatchObject({ kind: 'input' });
    await expect(open.run({ url: `${base}/loop` }, around())).rejects.toThrow(/for ever/);
  });

  it('takes no longer where it was made to be slow to read', async () => {
    const began = ownTime();
    const page = await open.run({ url: `${base}/slow` }, around());
    expect(page).toMatchObject({ text: expect.stringContaining('End') });
    expect(ownTime() - began).toBeLessThan(2_000);
  });

  it('is none of this machine or network, whatever it is called and wherever it redirects to', async () => {
    const closed = [
      `${base}/`,
      'http://127.1/',
      'http://2130706433/',
      'http://0x7f.1/',
      'http://[::1]/',
      'http://[::ffff:127.0.0.1]/',
      'http://169.254.169.254/latest/meta-data',
      'http://10.0.0.1/',
      'http://user:pass@example.com/',
      'file:///etc/passwd',
      'gopher://example.com/',
      'https://example.com:8443/',
    ];
    for (const url of closed)
      await expect(real.approval!({ url }, around()), url).rejects.toMatchObject({ kind: 'security' });
    // A name is judged when the connection is made.
    await expect(real.run({ url: 'http://localhost/' }, around())).rejects.toThrow(/public internet/);
    await expect(open.run({ url: `${base}/inside` }, around())).rejects.toMatchObject({ kind: 'security' });
    expect(asked).toEqual(['/inside']);
  });
});

it('knows the addresses of the internet at large', () => {
  const inside = [
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
  ];
  const inside6 = [
    '::1',
    '::',
    'fe80::1',
    'fc00::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    '2002:a00:1::',
    '2001::1',
    'x',
  ];
  for (const address of [...inside, ...inside6]) expect(isPublicAddress(address), address).toBe(false);
  for (const address of ['1.1.1.1', '93.184.216.34', '2606:4700::1111'])
    expect(isPublicAddress(address), address).toBe(true);
});
