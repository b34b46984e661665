import type { AppEvent } from '../core/events.ts';
import { createOpenCalls, forgetOver, type Sink } from './event-bus.ts';

/** Values of a metric's labels, in the order of its names. */
export type Labels = readonly string[];

export interface MetricSpec {
  /** As Prometheus names them: `polylogue_calls_total`. */
  name: string;
  help: string;
  labels: readonly string[];
}

export type Registry = ReturnType<typeof createRegistry>;

/** Label values may come from callers: what would make more series than this is counted together under `other`. */
const maxSeries = 500;

/** Metrics of this process. One that is registered again takes the place of the one before. */
export function createRegistry() {
  const shown = new Map<string, () => string>();
  const show = (spec: MetricSpec, type: string, samples: () => readonly string[]) =>
    shown.set(spec.name, () => block(spec, type, samples()));
  return {
    counter(spec: MetricSpec) {
      const series = createSeries(spec.labels.length, () => ({ value: 0 }));
      show(spec, 'counter', () => [...series.all()].map(([labels, { value }]) => sample(spec, labels, value)));
      return {
        add(labels: Labels, amount = 1): void {
          if (amount >= 0) series.of(labels).value += amount;
        },
      };
    },
    /** `buckets`: upper bounds, rising, without infinity. */
    histogram(spec: MetricSpec, buckets: readonly number[]) {
      const series = createSeries(spec.labels.length, () => ({ counts: buckets.map(() => 0), count: 0, sum: 0 }));
      show(spec, 'histogram', () => [...series.all()].flatMap(each => distribution(spec, buckets, each)));
      return {
        observe(labels: Labels, value: number): void {
          const own = series.of(labels);
          own.count++;
          own.sum += value;
          own.counts = own.counts.map((count, index) => (value <= (buckets[index] ?? 0) ? count + 1 : count));
        },
      };
    },
    /** Its values are asked for when it is shown. */
    gauge(spec: MetricSpec, read: () => Iterable<readonly [Labels, number]>): void {
      show(spec, 'gauge', () => [...read()].map(([labels, value]) => sample(spec, labels, value)));
    },
    /** All of them in Prometheus' text format 0.0.4. */
    render: () => [...shown.values()].map(render => render()).join(''),
  };
}

function createSeries<Value>(width: number, blank: () => Value) {
  const kept = new Map<string, readonly [Labels, Value]>();
  const overflow: Labels = Array.from({ length: width }, () => 'other');
  const find = (labels: Labels): Value => {
    const key = JSON.stringify(labels);
    const [, value = blank()] = kept.get(key) ?? [];
    kept.set(key, [labels, value]);
    return value;
  };
  return {
    of: (labels: Labels): Value => find(kept.size < maxSeries || kept.has(JSON.stringify(labels)) ? labels : overflow),
    all: (): Iterable<readonly [Labels, Value]> => kept.values(),
  };
}

interface Counts {
  counts: number[];
  count: number;
  sum: number;
}

function distribution(
  spec: MetricSpec,
  buckets: readonly number[],
  [labels, own]: readonly [Labels, Counts],
): string[] {
  const bucket = { ...spec, name: `${spec.name}_bucket`, labels: [...spec.labels, 'le'] };
  return [
    ...buckets.map((bound, index) => sample(bucket, [...labels, String(bound)], own.counts[index] ?? 0)),
    sample(bucket, [...labels, '+Inf'], own.count),
    sample({ ...spec, name: `${spec.name}_sum` }, labels, own.sum),
    sample({ ...spec, name: `${spec.name}_count` }, labels, own.count),
  ];
}

function block({ name, help }: MetricSpec, type: string, samples: readonly string[]): string {
  const lines = [`# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}`, `# TYPE ${name} ${type}`, ...samples];
  return `${lines.join('\n')}\n`;
}

function sample({ name, labels: names }: MetricSpec, labels: Labels, value: number): string {
  const pairs = names.map((label, index) => `${label}="${(labels[index] ?? '').replace(/[\\"\n]/g, escaped)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${shown(value)}`;
}

/** Without the dust that sums of fractions gather (0.6400000000000001). */
const shown = (value: number): string => String(Number.isFinite(value) ? Number(value.toPrecision(15)) : value);

const escaped = (sign: string): string => (sign === '\n' ? '\\n' : `\\${sign}`);

/** Seconds; calls take from milliseconds (an action) to half an hour (a model that thinks). */
const callSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800];

const maxBreakers = 500;

type EventOf<Type extends AppEvent['type']> = Extract<AppEvent, { type: Type }>;

/** Counts what the events tell. Texts in labels are masked before they come here, as for every sink. */
export function createMetrics(): Sink & Pick<Registry, 'render' | 'gauge'> {
  const registry = createRegistry();
  const meters = metersOf(registry);
  const running = createOpenCalls(() => undefined);
  const breakers = new Map<string, EventOf<'breaker.change'>>();
  registry.gauge({ name: 'polylogue_calls_running', help: 'Calls under way.', labels: ['tool'] }, () =>
    [...Map.groupBy(running.left(), ({ tool }) => tool)].map(([tool, { length }]) => [[tool], length]),
  );
  registry.gauge(
    {
      name: 'polylogue_breaker_state',
      help: '1 for the state that a breaker is in; one that never changed is closed and not listed.',
      labels: ['provider', 'model', 'scope', 'state'],
    },
    () => [...breakers.values()].map(({ provider, model = '', scope, to }) => [[provider, model, scope, to], 1]),
  );

  const count = (event: AppEvent): void => {
    switch (event.type) {
      case 'call.end':
        countCall(meters, event);
        return;
      case 'model.attempt':
        countAttempt(meters, event);
        return;
      case 'breaker.change':
        breakers.set(JSON.stringify([event.provider, event.model, event.scope]), event);
        forgetOver(breakers, maxBreakers);
        return;
      case 'files.read':
        meters.files.add(['sent'], event.embedded.length);
        meters.files.add(['skipped'], event.skipped.length);
        return;
      case 'files.written':
        meters.files.add([event.code === undefined ? 'written' : 'unwritten']);
        return;
      case 'warning':
        meters.warnings.add([]);
        return;
      default:
        return;
    }
  };

  return {
    name: 'metrics',
    write(observations) {
      for (const observation of observations) {
        running.of(observation);
        count(observation.event);
      }
    },
    render: registry.render,
    gauge: registry.gauge,
  };
}

type Meters = ReturnType<typeof metersOf>;

function metersOf({ counter, histogram }: Registry) {
  const who = ['provider', 'model'];
  return {
    calls: counter({
      name: 'polylogue_calls_total',
      help: 'Calls that ended.',
      labels: ['tool', 'status', 'code'],
    }),
    took: histogram(
      { name: 'polylogue_call_duration_seconds', help: 'How long calls took.', labels: ['tool'] },
      callSeconds,
    ),
    attempts: counter({
      name: 'polylogue_model_attempts_total',
      help: 'Attempts to get an answer from a model; skipped ones were not asked.',
      labels: [...who, 'outcome', 'class'],
    }),
    answered: histogram(
      {
        name: 'polylogue_model_attempt_duration_seconds',
        help: 'How long attempts took that were made.',
        labels: who,
      },
      callSeconds,
    ),
    tokens: counter({
      name: 'polylogue_tokens_total',
      help: 'Tokens; input includes those read from and written to caches, output includes reasoning.',
      labels: [...who, 'kind'],
    }),
    cost: counter({
      name: 'polylogue_cost_usd_total',
      help: 'US dollars, as far as prices are known.',
      labels: who,
    }),
    files: counter({ name: 'polylogue_files_total', help: 'Files of calls.', labels: ['outcome'] }),
    warnings: counter({ name: 'polylogue_warnings_total', help: 'Warnings of the server.', labels: [] }),
  };
}

function countCall({ calls, took }: Meters, { code, status, elapsedMs, ...event }: EventOf<'call.end'>): void {
  // Whatever a caller wrote there is no tool, and would make a series of its own.
  const tool = code === 'TOOL_NOT_FOUND' ? 'unknown' : event.tool;
  calls.add([tool, status, code ?? '']);
  took.observe([tool], elapsedMs / 1_000);
}

function countAttempt(meters: Meters, event: EventOf<'model.attempt'>): void {
  const { provider, model, outcome, usage, costUsd } = event;
  const own = [provider, model];
  meters.attempts.add([...own, outcome, event.class ?? '']);
  if (outcome !== 'skipped') meters.answered.observe(own, event.elapsedMs / 1_000);
  if (costUsd !== undefined) meters.cost.add(own, costUsd);
  if (!usage) return;
  const { input, output, reasoning, cacheRead: cache_read, cacheWrite: cache_write } = usage;
  const counts = { input, output, reasoning, cache_read, cache_write };
  for (const [kind, tokens] of Object.entries(counts)) meters.tokens.add([...own, kind], tokens);
}
