/** Values of a metric's labels, in the order of its names. */
export type Labels = readonly string[];

export interface MetricSpec {
  /** As Prometheus names them: `polylogue_calls_total`. */
  name: string;
  help: string;
  labels: readonly string[];
}

export interface Counter {
  add(labels: Labels, amount?: number): void;
}

export interface Histogram {
  observe(labels: Labels, value: number): void;
}

export interface Registry {
  counter(spec: MetricSpec): Counter;
  /** `buckets`: upper bounds, rising, without infinity. */
  histogram(spec: MetricSpec, buckets: readonly number[]): Histogram;
  /** Its values are asked for when it is shown. */
  gauge(spec: MetricSpec, read: () => Iterable<readonly [Labels, number]>): void;
  /** All of them in Prometheus' text format 0.0.4. */
  render(): string;
}

/** Label values may come from callers: what would make more series than this is counted together under `other`. */
const mostSeries = 500;

/** Metrics of this process. One that is registered again takes the place of the one before. */
export function createRegistry(): Registry {
  const shown = new Map<string, () => string>();
  return {
    counter(spec) {
      const series = createSeries(spec.labels.length, () => ({ value: 0 }));
      shown.set(spec.name, () =>
        block(
          spec,
          'counter',
          [...series.all()].map(([labels, { value }]) => sample(spec, labels, value)),
        ),
      );
      return {
        add(labels, amount = 1) {
          if (amount >= 0) series.of(labels).value += amount;
        },
      };
    },
    histogram(spec, buckets) {
      const series = createSeries(spec.labels.length, () => ({ counts: buckets.map(() => 0), count: 0, sum: 0 }));
      shown.set(spec.name, () =>
        block(
          spec,
          'histogram',
          [...series.all()].flatMap(each => distribution(spec, buckets, each)),
        ),
      );
      return {
        observe(labels, value) {
          const own = series.of(labels);
          own.count++;
          own.sum += value;
          own.counts = own.counts.map((count, index) => (value <= (buckets[index] ?? 0) ? count + 1 : count));
        },
      };
    },
    gauge(spec, read) {
      shown.set(spec.name, () =>
        block(
          spec,
          'gauge',
          [...read()].map(([labels, value]) => sample(spec, labels, value)),
        ),
      );
    },
    render: () => [...shown.values()].map(show => show()).join(''),
  };
}

interface Series<Value> {
  of(labels: Labels): Value;
  all(): Iterable<readonly [Labels, Value]>;
}

function createSeries<Value>(width: number, blank: () => Value): Series<Value> {
  const kept = new Map<string, readonly [Labels, Value]>();
  const overflow: Labels = Array.from({ length: width }, () => 'other');
  const find = (labels: Labels): Value => {
    const key = JSON.stringify(labels);
    const [, value = blank()] = kept.get(key) ?? [];
    kept.set(key, [labels, value]);
    return value;
  };
  return {
    of: labels => find(kept.size < mostSeries || kept.has(JSON.stringify(labels)) ? labels : overflow),
    all: () => kept.values(),
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
function shown(value: number): string {
  return String(Number.isFinite(value) ? Number(value.toPrecision(15)) : value);
}

function escaped(sign: string): string {
  return sign === '\n' ? '\\n' : `\\${sign}`;
}
