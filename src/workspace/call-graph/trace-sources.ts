import { setImmediate } from 'node:timers/promises';
import { throwIfAborted } from '../../core/errors.ts';
import { reportOf, type TraceReport } from '../../files/graph/report/trace-report.ts';
import { createSourceSet, type GoModule } from '../../files/graph/source-set.ts';
import type { Language } from '../../files/outline/language.ts';
import type { Outline } from '../outline/outline.ts';
import { readOutline } from '../outline/read-outline.ts';
import { buildCallGraph } from './call-graph.ts';
import { type TraceRequest, traceIn } from './trace.ts';

export interface Source {
  path: string;
  language: Language;
  text: string;
}

/** Everything a trace needs; plain values, so that another thread can have them. */
export interface TraceInput {
  /** Paths are told relative to this. */
  root: string;
  sources: readonly Source[];
  goModules: readonly GoModule[];
  request: TraceRequest;
  /** Its only number is 1 once parsing has taken long enough; in memory that threads share. */
  late: Int32Array<SharedArrayBuffer>;
}

export interface TracedSources extends TraceReport {
  /** Files with syntax errors: what these hide is missing. */
  broken: string[];
  /** Files for which no time was left: they are not in the graph. */
  unread: string[];
}

/** Parses the sources, builds their call graph and traces the target in it. */
export async function traceSources(input: TraceInput, signal?: AbortSignal): Promise<TracedSources> {
  const outlines: Outline[] = [];
  for (const { path, language, text } of input.sources) {
    await setImmediate();
    throwIfAborted(signal);
    // One is always read: an answer of nothing helps nobody.
    if (outlines.length > 0 && Atomics.load(input.late, 0) === 1) break;
    outlines.push(await readOutline(path, language, text));
  }
  const graph = buildCallGraph(createSourceSet(outlines, input.goModules), signal);
  const report = reportOf(traceIn(graph, input.request), input.root);
  const broken = outlines.filter(outline => outline.broken).map(({ path }) => path);
  const unread = input.sources.slice(outlines.length).map(({ path }) => path);
  return { ...report, broken, unread };
}
