import type { RecentEvent } from '../core/ports.ts';
import type { Written } from './lane.ts';

export type Observation = RecentEvent;

/** Writes down what happened. The bus calls `write` with the events in order, and again only after the last one ended. */
export interface Sink {
  /** For messages about the sink itself. */
  name: string;
  /** May throw or reject: that loses these events for this sink, and nothing else. False: it had nothing to write. */
  write(observations: readonly Observation[]): Written | Promise<Written>;
  /** Milliseconds for which events may wait for others, to be written with them; absent: none. */
  gatherMs?: number;
  close?(): Written | Promise<Written>;
}
