import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runProxy } from '../../../src/server/proxy/proxy.ts';
import { createKeptToken, reachDaemon, startDaemon, takeStartLock } from '../../../src/server/proxy/start-daemon.ts';
import { realClock } from '../../support/clock.ts';
import { freePort } from '../../support/redis-server.ts';
import { type TempProject, tempProject } from '../../support/temp-project.ts';

let home: TempProject;
let server: Server | undefined;

beforeEach(async () => {
  home = await tempProject();
});

afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
  await home.dispose();
});

describe('the kept token', () => {
  it('is for its user alone, long, and the same for whoever asks', async () => {
    const path = home.path('data/daemon.token');
    const [one, other] = [createKeptToken(path), createKeptToken(path)];
    expect(one.read()).toBeUndefined();
    const token = one.readOrMake();
    expect(token).toMatch(/^[\w-]{43}$/);
    expect([other.readOrMake(), other.read()]).toEqual([token, token]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(home.path('data'))).mode & 0o777).toBe(0o700);
  });
});

describe('the lock of a start', () => {
  it('is had by one, and by the next once it is let go', () => {
    const path = home.path('daemon.start');
    const release = takeStartLock(path, process.pid, Date.now());
    expect(takeStartLock(path, process.pid, Date.now())).toBeUndefined();
    release?.();
    expect(takeStartLock(path, process.pid, Date.now())).toBeTypeOf('function');
  });

  it('of a process that is gone, or of long ago, is nobody’s', async () => {
    const path = home.path('daemon.start');
    await writeFile(path, '2147483646');
    expect(takeStartLock(path, process.pid, Date.now())).toBeTypeOf('function');
    await utimes(path, 0, 0);
    expect(takeStartLock(path, process.pid, Date.now())).toBeTypeOf('function');
    expect(await readFile(path, 'utf8')).toBe(String(process.pid));
  });
});

describe('reaching a daemon', () => {
  const signal = new AbortController().signal;
  const clock = realClock();
  const onRemark = () => {};

  async function answering(statuses: number[], type = 'application/json'): Promise<string> {
    const port = await freePort();
    server?.close();
    server = createServer((_request, response) => {
      response.writeHead(statuses.shift() ?? 200, { 'content-type': type }).end();
    }).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${port}`;
  }

  it('waits for one that does not take calls yet', async () => {
    const statuses = [503, 503];
    await reachDaemon({ url: await answering(statuses), clock, onRemark }, false, signal);
    expect(statuses).toEqual([]);
  });

  it('waits for one behind a proxy that has none at the moment', async () => {
    const statuses = [502, 504];
    const url = await answering(statuses, 'text/html');
    // In the end a page comes, which is no daemon's.
    await expect(reachDaemon({ url, clock, onRemark }, false, signal)).rejects.toMatchObject({ kind: 'config' });
    expect(statuses).toEqual([]);
  });

  it('waits longer for one that went away and that it may not start', async () => {
    const port = await freePort();
    let seconds = 0;
    const patient = {
      monotonic: () => seconds * 1_000,
      async sleep() {
        seconds += 1;
        if (seconds === 10)
          server = createServer(
            (_request, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(),
          ).listen(port, '127.0.0.1');
        if (seconds === 10 && server) await once(server, 'listening');
      },
    };
    await reachDaemon({ url: `http://127.0.0.1:${port}`, clock: patient, onRemark }, true, signal);
    expect(seconds).toBe(10);
  });

  it('hands on why one refuses it', async () => {
    const error = { class: 'host', message: 'The Host header names none.', next: 'Call it by its address.' };
    const port = await freePort();
    server = createServer((_request, response) => void response.writeHead(403).end(JSON.stringify({ error }))).listen(
      port,
      '127.0.0.1',
    );
    await once(server, 'listening');
    await expect(
      reachDaemon({ url: `http://127.0.0.1:${port}`, clock, onRemark }, false, signal),
    ).rejects.toMatchObject({
      kind: 'security',
      message: expect.stringContaining(error.message),
      details: { next: error.next },
    });
  });

  it('says that nobody whom it trusts signed a certificate, and what to do', async () => {
    const [key, cert] = [home.path('key.pem'), home.path('cert.pem')];
    const subject = ['-nodes', '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', ...subject, '-keyout', key, '-out', cert], {
      stdio: 'ignore',
    });
    const port = await freePort();
    server = createSecureServer({ key: await readFile(key), cert: await readFile(cert) }).listen(port, '127.0.0.1');
    await once(server, 'listening');
    await expect(
      reachDaemon({ url: `https://127.0.0.1:${port}`, clock, onRemark }, false, signal),
    ).rejects.toMatchObject({
      message: expect.stringContaining('self-signed certificate'),
      details: { next: expect.stringContaining('NODE_EXTRA_CA_CERTS') },
    });
  });

  it('says so where something else answers, or nobody may be started', async () => {
    for (const [status, type] of [
      [404, undefined],
      [200, 'text/html'],
    ] as const) {
      const url = await answering([status], type);
      await expect(reachDaemon({ url, clock, onRemark }, false, signal)).rejects.toMatchObject({
        kind: 'config',
        message: expect.stringContaining('no Polylogue daemon'),
      });
    }
    const nobody = reachDaemon({ url: `http://127.0.0.1:${await freePort()}`, clock, onRemark }, false, signal);
    await expect(nobody).rejects.toMatchObject({
      kind: 'storage',
      details: { next: expect.stringContaining('polylogue serve') },
    });
  });

  it('starts one where there is none, and lets go of the lock', async () => {
    const port = await freePort();
    const program = `require('http').createServer((q, r) => r.setHeader('content-type', 'application/json').end()).listen(${port}, '127.0.0.1')`;
    const command = {
      command: process.execPath,
      args: ['-e', program],
      cwd: home.root,
      env: {},
      log: home.path('logs/daemon.log'),
    };
    let released = 0;
    let pid = 0;
    const start = () => {
      const daemon = startDaemon(command);
      pid = daemon.pid;
      return { daemon, release: () => void released++ };
    };
    try {
      await reachDaemon({ url: `http://127.0.0.1:${port}`, start, clock, onRemark }, false, signal);
      expect(released).toBe(1);
    } finally {
      process.kill(pid, 'SIGKILL');
    }
  });

  it('tells what one said that ended at once', async () => {
    const args = ['-e', 'console.error("no key in the lock"); process.exit(2)'];
    const command = { command: process.execPath, args, cwd: home.root, env: {}, log: home.path('logs/daemon.log') };
    const start = () => ({ daemon: startDaemon(command), release() {} });
    const reached = reachDaemon({ url: `http://127.0.0.1:${await freePort()}`, start, clock, onRemark }, false, signal);
    await expect(reached).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('no key in the lock'),
    });
  });
});

it.each(['ends its input', 'sends a signal'])(
  'a host that %s before there is a daemon is let go at once',
  async how => {
    const port = await freePort();
    server = createServer((_request, response) => void response.writeHead(503).end()).listen(port, '127.0.0.1');
    await once(server, 'listening');
    const remarks: string[] = [];
    const [input, output, stop] = [new PassThrough(), new PassThrough(), new AbortController()];
    const run = runProxy({
      url: `http://127.0.0.1:${port}`,
      access: { token: undefined },
      root: undefined,
      isGuess: false,
      home: home.root,
      daemon: undefined,
      maxBytes: 1_000,
      clock: realClock(),
      onRemark: text => remarks.push(text),
      input,
      output,
      stop: stop.signal,
    });
    if (how === 'sends a signal') input.write('{"jsonrpc":"2.0","id":1,"method":"server/discover"}\n');
    if (how === 'ends its input') input.end();
    else stop.abort();
    await run;
    expect(output.read()).toBeNull();
    expect(remarks).toEqual([]);
  },
);
