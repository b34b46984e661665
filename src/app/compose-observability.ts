import { createMaskedStream } from '../calls/ask/redaction.ts';
import type { ExchangeRecord, Random } from '../core/ports.ts';
import type { ModelService } from '../models/call/models.ts';
import { createReplay, type ReplayCall } from '../models/call/replay.ts';
import type { Telemetry } from '../observability/observability.ts';

/** Running parts → what a product tells of itself. */
export function composeObservability(
  { metrics, gauge, exchanges, logExchange, mask }: Telemetry,
  models: Pick<ModelService, 'load' | 'route' | 'ask'>,
  random: Random,
) {
  gauge('polylogue_questions_running', 'Questions to models that are under way.', ['provider'], () =>
    [...models.load().running].map(([provider, count]) => [[provider], count]),
  );
  gauge('polylogue_questions_waiting', 'Questions to models that wait for a place.', [], () => [
    [[], models.load().waiting],
  ]);
  const repeat = createReplay({ route: models.route, ask: models.ask, random });
  /** Asks the same model the same question again, on the operator's own account; the answer is without secrets, as every reply. */
  const send = async (exchange: ExchangeRecord, { signal, onText }: Omit<ReplayCall, 'payer'>) => {
    const scope = exchange.exchange;
    const stream = onText && createMaskedStream(mask, scope, onText);
    const answer = await repeat(exchange, { payer: { owner: 'local' }, signal, onText: stream?.push });
    await stream?.end();
    const wanted = (answer.said ?? []).flatMap(part => (part.type === 'call' ? [part] : []));
    const calls = wanted.map(
      async ({ name, args }) => (await mask(`${name} ${JSON.stringify(args)}`, scope, 'model')).text,
    );
    const { usage, costUsd, latencyMs } = answer;
    const { text } = await mask(answer.text, scope, 'model');
    // Calls of tools that it wants, which nobody runs: name and arguments as JSON.
    return { text, calls: await Promise.all(calls), usage, costUsd, latencyMs };
  };
  // What models were asked and answered, as far as it was kept; undefined where nothing is kept on disk. Without `append` the log is
  // off (COMMS_LOG), and can only be read.
  const replay = exchanges && { ...exchanges, send, append: logExchange };
  // Masking rejects where its key cannot be used.
  return { metrics, gauge, replay, tryMask: () => mask('A text.', 'warm') };
}

/** What the daemon's endpoints know. */
export function gaugeDaemon(
  gauge: Telemetry['gauge'],
  { load }: { load(): { sessions: number; callsRunning: number; callsWaiting: number } },
): void {
  gauge('polylogue_sessions', 'Clients that are connected to the daemon.', [], () => [[[], load().sessions]]);
  const calls = 'Calls of clients of the daemon, by whether they run or wait for a place.';
  gauge('polylogue_daemon_calls', calls, ['state'], () => [
    [['running'], load().callsRunning],
    [['waiting'], load().callsWaiting],
  ]);
}
