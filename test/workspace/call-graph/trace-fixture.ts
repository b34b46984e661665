import { fileURLToPath } from 'node:url';
import type { TraceRequest } from '../../../src/workspace/call-graph/trace.ts';
import { createTracer, type TracedProject } from '../../../src/workspace/call-graph/tracer.ts';
import { createSandbox } from '../../../src/workspace/sandbox.ts';
import { createPool } from '../../../src/workspace/workers/worker-pool.ts';

export const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/trace-${name}`, import.meta.url));

export interface TraceCall {
  root: string;
  /** Other roots. */
  others?: readonly string[];
  target: string;
  mode?: TraceRequest['mode'];
  files?: readonly string[];
  hints?: readonly string[];
  signal?: AbortSignal;
  /** Runs what is to happen after a time; absent: that time never comes. */
  after?: (ms: number, run: () => void) => () => void;
}

export function trace({
  root,
  others = [],
  target,
  mode = 'precision',
  files = [],
  hints = [],
  signal,
  after,
}: TraceCall) {
  const clock = { after: after ?? (() => () => undefined) };
  // Its threads do not keep the process alive.
  const pool = createPool({ size: 1, clock });
  const tracer = createTracer({
    sandbox: createSandbox({ roots: [root, ...others], allowSecrets: false }),
    home: root,
    maxNamedFiles: 50,
    clock,
    pool,
  });
  return tracer({ root, target, mode, files, hints, signal: signal ?? new AbortController().signal });
}

interface Edge {
  from: string;
  to: string;
  kind: string;
  at: string;
  ambiguous?: string;
}

/** Each edge as one line: `a calls b src/a.ts:3`, with a `?` at its end when it is ambiguous. */
export function edgesOf({ traced }: TracedProject): string[] {
  const edges = traced?.graph.edges as unknown as Edge[];
  return edges.map(({ from, to, kind, at, ambiguous }) => `${from} ${kind} ${to} ${at}${ambiguous ? ' ?' : ''}`);
}

export function openEndsOf({ traced }: TracedProject): string[] {
  const ends = traced?.graph.unresolved as unknown as { from: string; target: string; at: string; why: string }[];
  return ends.map(({ from, target, at, why }) => `${from} → ${target} ${at} ${why}`);
}
