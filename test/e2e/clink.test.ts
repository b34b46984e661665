import { afterEach, expect, it, vi } from 'vitest';
import { geminiAnswers, type StandIn, standIn } from '../support/stand-in-cli.ts';
import { type TempProject, tempProject } from '../support/temp-project.ts';
import { initializeParams, type RawServer, startRawServer } from './raw-server.ts';

const open: { server?: RawServer; project?: TempProject; program?: StandIn } = {};
afterEach(async () => {
  open.server?.end();
  await open.server?.ended;
  await open.project?.dispose();
  await open.program?.dispose();
});

async function start(again = false): Promise<{ server: RawServer; program: StandIn }> {
  const project = (again && open.project) || (await tempProject());
  const program = (again && open.program) || (await standIn('gemini'));
  const env = { ...program.env, POLYLOGUE_TOOLSETS: 'core,agent' };
  const server = startRawServer({ root: project.root, home: project.path('home'), env });
  Object.assign(open, { project, program, server });
  await server.request(1, 'initialize', initializeParams);
  server.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
  return { server, program };
}

const clink = { name: 'clink', arguments: { prompt: 'Say something', cli_name: 'gemini' } };

it('keeps the noise of a CLI off standard output: each line is a message of the protocol', async () => {
  const { server, program } = await start();
  program.script([{ out: 'BANNER\n' }, { err: 'WARNING: noise\n'.repeat(100) }, ...geminiAnswers('Something.')]);
  const { result } = await server.request(2, 'tools/call', clink);
  expect(JSON.parse(result.content[0].text)).toMatchObject({ content: 'Something.', status: 'continuation_available' });
  expect(server.lines.length).toBeGreaterThan(1);
  for (const line of server.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
  expect(server.lines.join('\n')).not.toMatch(/BANNER|noise/);
});

it('ends a CLI with its children when the client cancels the call', async () => {
  const { server, program } = await start();
  program.script([{ child: 'deaf' }, { child: 'daemon' }, { deaf: true, hang: true }]);
  void server.request(2, 'tools/call', clink);
  await vi.waitFor(() => expect(program.calls()).toHaveLength(1), { timeout: 30_000 });
  const ofCli = async () => (await program.left()).filter(command => !command.includes('main.js'));
  await vi.waitFor(async () => expect((await ofCli()).length).toBe(3), { timeout: 30_000 });
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } };
  server.write(`${JSON.stringify(cancelled)}\n`);
  await vi.waitFor(async () => expect(await ofCli()).toEqual([]), { timeout: 30_000 });
});

it('begins a new session of a CLI where the server was killed while the old one was asked something', async () => {
  const { server, program } = await start();
  const ask = (from: RawServer, id: number, prompt: string, continuation_id?: string) =>
    from.request(id, 'tools/call', { name: 'clink', arguments: { prompt, cli_name: 'gemini', continuation_id } });
  program.script(geminiAnswers('Noted.', 'first'));
  const { result } = await ask(server, 2, 'My word is heron.');
  const { continuation_id } = JSON.parse(result.content[0].text).continuation_offer;
  program.script([{ hang: true }]);
  void ask(server, 3, 'Forget it.', continuation_id);
  await vi.waitFor(() => expect(program.calls()).toHaveLength(2), { timeout: 30_000 });
  server.signal('SIGKILL');
  await server.ended;
  process.kill(program.calls()[1]?.pid ?? 0, 'SIGKILL');
  const { server: second } = await start(true);
  program.script(geminiAnswers('Heron.', 'second'));
  await ask(second, 2, 'Which word?', continuation_id);
  const [, interrupted, after] = program.calls();
  expect(interrupted?.args).toContain('--resume');
  expect(after?.args).not.toContain('--resume');
  expect(after?.prompt).toContain('heron');
  expect(after?.prompt).not.toContain('Forget it.');
});
