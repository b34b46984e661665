import { storePlace, traceSettings } from './config/derive.ts';
import type { Clock, CommsExchange, CommsReader, Random } from './domain/ports.ts';
import type { ModelAnswer } from './models/answer.ts';
import { createRepeat, type RepeatCall } from './models/asking/repeat.ts';
import type { Team } from './models/team.ts';
import { createTelemetry, type Telemetry } from './telemetry/observe.ts';
import { version } from './version.ts';
import type { AppConfig } from './wire-models.ts';

export interface TelemetrySurroundings {
  clock: Clock;
  random: Random;
  writeError(line: string): void;
}

const megabyte = 1024 * 1024;

/** Settings → who observes, and what is masked before they do. */
export function wireTelemetry(config: AppConfig, around: TelemetrySurroundings): Promise<Telemetry> {
  const values = config.values.app;
  const traces = traceSettings(values);
  const headers = Object.values(traces?.headers ?? {});
  return createTelemetry({
    clock: around.clock,
    random: around.random,
    writeError: around.writeError,
    home: storePlace(values, config.home).isPrivate ? undefined : config.home,
    // With a header such as `Bearer TOKEN` the token alone is a secret too.
    secrets: [...config.secrets, ...headers.flatMap(value => [value, ...value.split(' ')])],
    logLevel: values.logLevel,
    ...(values.commsLog && { comms: { maxBytes: values.commsLogMaxMb * megabyte } }),
    ...(traces && { traces }),
    version,
  });
}

/** What was said to models, for the operator: to be looked at, and to be said once more. */
export interface Replay extends CommsReader {
  /** Asks the same model the same question again, on the operator's own account. */
  send(exchange: CommsExchange, call: Omit<RepeatCall, 'payer'>): Promise<ModelAnswer>;
}

/** What a product tells of itself. */
export interface Observed extends Pick<Telemetry, 'metrics' | 'gauge'> {
  /** What models were asked and answered, as far as it was kept; absent where nothing is kept on disk. */
  replay?: Replay;
}

export function wireObserved(
  telemetry: Telemetry,
  team: Pick<Team, 'load' | 'route' | 'ask'>,
  random: Random,
): Observed {
  const { metrics, gauge, comms } = telemetry;
  gaugeLoad(gauge, team);
  const repeat = createRepeat({ route: team.route, ask: team.ask, random });
  const send: Replay['send'] = (exchange, call) => repeat(exchange, { ...call, payer: { owner: 'local' } });
  return { metrics, gauge, ...(comms && { replay: { ...comms, send } }) };
}

/** What the models' queue knows. */
function gaugeLoad(gauge: Telemetry['gauge'], { load }: Pick<Team, 'load'>): void {
  const running = 'Questions to models that are under way.';
  gauge({ name: 'polylogue_questions_running', help: running, labels: ['provider'] }, () =>
    [...load().running].map(([provider, count]) => [[provider], count]),
  );
  const waiting = 'Questions to models that wait for a place.';
  gauge({ name: 'polylogue_questions_waiting', help: waiting, labels: [] }, () => [[[], load().waiting]]);
}
