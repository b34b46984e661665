import { createMaskedStream } from '../calls/ask/redaction.ts';
import type { ExchangeReader, ExchangeRecord, LogExchange, Random } from '../core/ports.ts';
import type { ModelAnswer } from '../models/ask-model.ts';
import type { ModelService } from '../models/call/models.ts';
import { createReplay, type ReplayCall } from '../models/call/replay.ts';
import type { Telemetry } from '../observability/observability.ts';

/** What was said to models, for the operator: to be looked at, and to be said once more. */
export interface Replay extends ExchangeReader {
  /** Asks the same model the same question again, on the operator's own account. */
  send(exchange: ExchangeRecord, call: Omit<ReplayCall, 'payer'>): Promise<ReplayedCall>;
  /** Absent: the log is off (COMMS_LOG), and can only be read. */
  append?: LogExchange | undefined;
}

/** Without secrets, as every reply. */
export interface ReplayedCall extends Pick<ModelAnswer, 'text' | 'usage' | 'costUsd' | 'latencyMs'> {
  /** Calls of tools that it wants, which nobody runs: name and arguments as JSON. */
  calls: string[];
}

/** What a product tells of itself. */
export interface ObservabilityServices extends Pick<Telemetry, 'metrics' | 'gauge'> {
  /** What models were asked and answered, as far as it was kept; absent where nothing is kept on disk. */
  replay?: Replay;
}

export function composeObservability(
  telemetry: Telemetry,
  models: Pick<ModelService, 'load' | 'route' | 'ask'>,
  random: Random,
): ObservabilityServices {
  const { metrics, gauge, exchanges, logExchange, mask } = telemetry;
  gauge('polylogue_questions_running', 'Questions to models that are under way.', ['provider'], () =>
    [...models.load().running].map(([provider, count]) => [[provider], count]),
  );
  gauge('polylogue_questions_waiting', 'Questions to models that wait for a place.', [], () => [
    [[], models.load().waiting],
  ]);
  const repeat = createReplay({ route: models.route, ask: models.ask, random });
  const send: Replay['send'] = async (exchange, { signal, onText }) => {
    const scope = exchange.exchange;
    const stream = onText && createMaskedStream(mask, scope, onText);
    const answer = await repeat(exchange, { payer: { owner: 'local' }, signal, onText: stream?.push });
    await stream?.end();
    const wanted = (answer.said ?? []).flatMap(part => (part.type === 'call' ? [part] : []));
    const calls = wanted.map(
      async ({ name, args }) => (await mask(`${name} ${JSON.stringify(args)}`, scope, 'model')).text,
    );
    const { usage, costUsd, latencyMs } = answer;
    const text = (await mask(answer.text, scope, 'model')).text;
    return { text, calls: await Promise.all(calls), usage, costUsd, latencyMs };
  };
  return { metrics, gauge, ...(exchanges && { replay: { ...exchanges, send, append: logExchange } }) };
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
