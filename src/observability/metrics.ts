import { remember } from '../core/concurrency.ts';
import type { AppEvent } from '../core/events.ts';
import { createOpenCalls, type Sink } from './event-bus.ts';

/** Values of a metric's labels, in the order of its names. */
export type Labels = readonly string[];

export type Registry = ReturnType<typeof createRegistry>;

/** Label values may come from callers: what would make more series than this is counted together under `other`. */
const maxSeries = 500;

/** Upper bounds in seconds; calls take from milliseconds (an action) to half an hour (a model that thinks). */
const buckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800];

/** Metrics of this process by their Prometheus names (`polylogue_calls_total`); one that is registered again replaces the one before. */
export function createRegistry() {
  const shown = new Map<string, () => string>();
  const show = (name: string, help: string, type: string, samples: () => readonly string[]) =>
    shown.set(name, () => {
      const lines = [`# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}`, `# TYPE ${name} ${type}`, ...samples()];
      return `${lines.join('\n')}\n`;
    });
  return {
    counter(name: string, help: string, names: readonly string[]) {
      const series = createSeries(names.length, () => ({ value: 0 }));
      show(name, help, 'counter', () => series.all().map(([labels, { value }]) => sample(name, names, labels, value)));
      return (labels: Labels, amount = 1): void => {
        if (amount >= 0) series.of(labels).value += amount;
      };
    },
    histogram(name: string, help: string, names: readonly string[]) {
      const series = createSeries(names.length, () => ({ counts: buckets.map(() => 0), count: 0, sum: 0 }));
      show(name, help, 'histogram', () =>
        series
          .all()
          .flatMap(([labels, { counts, count, sum }]) => [
            ...[...buckets, '+Inf'].map((bound, at) =>
              sample(`${name}_bucket`, [...names, 'le'], [...labels, String(bound)], counts[at] ?? count),
            ),
            sample(`${name}_sum`, names, labels, sum),
            sample(`${name}_count`, names, labels, count),
          ]),
      );
      return (labels: Labels, value: number): void => {
        const own = series.of(labels);
        own.count++;
        own.sum += value;
        own.counts = own.counts.map((count, at) => (value <= (buckets[at] ?? 0) ? count + 1 : count));
      };
    },
    /** Its values are asked for when it is shown. */
    gauge(name: string, help: string, names: readonly string[], read: () => Iterable<readonly [Labels, number]>): void {
      show(name, help, 'gauge', () => [...read()].map(([labels, value]) => sample(name, names, labels, value)));
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
    const known = kept.get(key);
    if (known) return known[1];
    if (kept.size >= maxSeries && labels !== overflow) return find(overflow);
    const value = blank();
    kept.set(key, [labels, value]);
    return value;
  };
  return { of: find, all: () => [...kept.values()] };
}

function sample(name: string, names: readonly string[], labels: Labels, value: number): string {
  // Without the dust that sums of fractions gather (0.6400000000000001).
  const shown = Number.isFinite(value) ? Number(value.toPrecision(15)) : value;
  const pairs = names.map((label, index) => `${label}="${(labels[index] ?? '').replace(/[\\"\n]/g, escaped)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${shown}`;
}

const escaped = (sign: string): string => (sign === '\n' ? '\\n' : `\\${sign}`);

const maxBreakers = 500;

/** Counts what the events tell. Texts in labels are masked before they come here, as for every sink. */
export function createMetrics(): Sink & Pick<Registry, 'render' | 'gauge'> {
  const registry = createRegistry();
  const { gauge, render } = registry;
  const meters = metersOf(registry);
  const running = createOpenCalls(() => undefined);
  const breakers = new Map<string, Extract<AppEvent, { type: 'breaker.change' }>>();
  gauge('polylogue_calls_running', 'Calls under way.', ['tool'], () =>
    [...Map.groupBy(running.left(), ({ tool }) => tool)].map(([tool, { length }]) => [[tool], length]),
  );
  const states = '1 for the state that a breaker is in; one that never changed is closed and not listed.';
  gauge('polylogue_breaker_state', states, ['provider', 'model', 'scope', 'state'], () =>
    [...breakers.values()].map(({ provider, model = '', scope, to }) => [[provider, model, scope, to], 1]),
  );
  return {
    name: 'metrics',
    write(observations) {
      for (const observation of observations) {
        const { event } = observation;
        running.of(observation);
        if (event.type === 'breaker.change') {
          remember(breakers, JSON.stringify([event.provider, event.model, event.scope]), event, maxBreakers);
        } else count(meters, event);
      }
    },
    render,
    gauge,
  };
}

function metersOf({ counter, histogram }: Registry) {
  const who = ['provider', 'model'];
  const attempts = 'Attempts to get an answer from a model; skipped ones were not asked.';
  const answered = 'How long attempts took that were made.';
  const tokens = 'Tokens; input includes those read from and written to caches, output includes reasoning.';
  return {
    calls: counter('polylogue_calls_total', 'Calls that ended.', ['tool', 'status', 'code']),
    took: histogram('polylogue_call_duration_seconds', 'How long calls took.', ['tool']),
    attempts: counter('polylogue_model_attempts_total', attempts, [...who, 'outcome', 'class']),
    answered: histogram('polylogue_model_attempt_duration_seconds', answered, who),
    tokens: counter('polylogue_tokens_total', tokens, [...who, 'kind']),
    cost: counter('polylogue_cost_usd_total', 'US dollars, as far as prices are known.', who),
    files: counter('polylogue_files_total', 'Files of calls.', ['outcome']),
    warnings: counter('polylogue_warnings_total', 'Warnings of the server.', []),
  };
}

function count(meters: ReturnType<typeof metersOf>, event: AppEvent): void {
  switch (event.type) {
    case 'call.end': {
      // Whatever a caller wrote there is no tool, and would make a series of its own.
      const tool = event.code === 'TOOL_NOT_FOUND' ? 'unknown' : event.tool;
      meters.calls([tool, event.status, event.code ?? '']);
      meters.took([tool], event.elapsedMs / 1_000);
      return;
    }
    case 'model.attempt': {
      const { provider, model, outcome, usage, costUsd } = event;
      const own = [provider, model];
      meters.attempts([...own, outcome, event.class ?? '']);
      if (outcome !== 'skipped') meters.answered(own, event.elapsedMs / 1_000);
      if (costUsd !== undefined) meters.cost(own, costUsd);
      if (!usage) return;
      const { input, output, reasoning, cacheRead: cache_read, cacheWrite: cache_write } = usage;
      const counts = { input, output, reasoning, cache_read, cache_write };
      for (const [kind, amount] of Object.entries(counts)) meters.tokens([...own, kind], amount);
      return;
    }
    case 'files.read':
      meters.files(['sent'], event.embedded.length);
      meters.files(['skipped'], event.skipped.length);
      return;
    case 'files.written':
      meters.files([event.code === undefined ? 'written' : 'unwritten']);
      return;
    case 'warning':
      meters.warnings([]);
  }
}
