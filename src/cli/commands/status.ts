import { type FoundDaemon, findDaemons, readinessOf } from '../../app/app.ts';
import { requireHome } from '../../config/home.ts';
import { type CommandContext, defineCommand, flag, numberFlag } from '../command/command.ts';

export const status = defineCommand({
  name: 'status',
  group: 'Server',
  summary: 'Show whether a daemon is running for this data directory',
  flags: [flag('port <number>', 'Only the daemon on this port, of any data directory')],
  examples: [
    ['polylogue status', 'All daemons; exits with 0 when one is ready, else 1'],
    ['polylogue status --port 9000', 'The daemon on this port'],
    ['polylogue status --json', 'Print JSON'],
  ],
  async run(context) {
    const port = numberFlag(context.flags, 'port', { min: 1, max: 65_535 });
    const all = await findDaemons(context.config, context.environment.clock);
    const found = all.filter(daemon => port === undefined || daemon.port === port);
    if (port !== undefined && found.length === 0) return showUnknown(context, `http://127.0.0.1:${port}`);
    // Whoever only looks need not be able to write: as long as there is something to see.
    if (found.length === 0)
      requireHome(context.config.home, 'Set POLYLOGUE_HOME to the data directory that the daemon uses.');
    const shown = await Promise.all(found.map(async daemon => ({ ...daemon, answer: await answerOf(daemon) })));
    const daemons = shown.map(({ status: _status, t: reported_at, ...daemon }) => ({ ...daemon, reported_at }));
    context.out.document({ status: 'success', daemons });
    print(context, shown);
    return shown.some(({ answer }) => answer === 'ready') ? 0 : 1;
  },
});

/** Shows a daemon that did not register in this data directory, of which only its own answer is known. */
async function showUnknown({ out }: CommandContext, url: string): Promise<number> {
  const answer = await readinessOf(url);
  const isDaemon = answer === 'ready' || answer === 'not_ready';
  out.document({ status: 'success', daemons: isDaemon ? [{ url, answer }] : [] });
  if (answer === 'other')
    out.line(`The program that answers at ${url} is not a Polylogue daemon. Choose another --port.`);
  else if (answer === 'absent')
    out.line(`No daemon answers at ${url}. "polylogue serve --port ${new URL(url).port}" starts one.`);
  else out.line(out.style('bold', url), `  ${answer.replace('_', ' ')} (not registered in this data directory)`);
  return answer === 'ready' ? 0 : 1;
}

/** What a daemon itself says when it is asked. */
async function answerOf({ url, state, status }: FoundDaemon) {
  const answer = state === 'gone' ? 'absent' : await readinessOf(url);
  if (answer === 'not_ready' && status === 'draining') return status;
  return answer === 'absent' || answer === 'other' ? 'unreachable' : answer;
}

function print({ out, environment }: CommandContext, shown: readonly (FoundDaemon & { answer: string })[]): void {
  if (shown.length === 0) out.line('No daemon is running for this data directory. Run "polylogue serve" to start one.');
  for (const { url, pid, version, started_at, state, answer, reason, ...load } of shown) {
    const minutes = Math.max(0, Math.round((environment.clock.now() / 1_000 - started_at) / 60));
    const colour = answer === 'ready' ? 'green' : 'red';
    const how = state === 'gone' ? 'its process is gone' : answer.replace('_', ' ');
    out.line(out.style('bold', url), '  ', out.style(colour, how), reason === undefined ? '' : ` (${reason})`);
    out.line(`  process ${pid}, version ${version}, up ${minutes} min`);
    const { sessions, calls_running: calls, jobs_running: jobs, calls_waiting: waiting } = load;
    out.line(`  ${sessions} sessions, ${calls} calls and ${jobs} jobs running, ${waiting} calls waiting`);
    if (load.token_file !== undefined) out.line(`  token in ${load.token_file}`);
    if (load.tokens_problem !== undefined) out.line('  ', out.style('red', 'tokens:'), ` ${load.tokens_problem}`);
  }
}
