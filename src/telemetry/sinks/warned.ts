import type { Sink } from '../sink.ts';

/** A warning that belongs to no call: something is set up badly. */
export interface Warned {
  where: string;
  message: string;
}

/** What goes on for ever must not fill the memory; the first ones tell what is wrong. */
const mostKept = 100;

export interface WarnedSink extends Sink {
  /** The oldest first. */
  warned: readonly Warned[];
}

export function createWarned(): WarnedSink {
  const warned: Warned[] = [];
  return {
    name: 'warned',
    warned,
    write(observations) {
      for (const { event } of observations) {
        if (event.type !== 'warning' || event.reqId !== undefined || warned.length >= mostKept) continue;
        warned.push({ where: event.where, message: event.message });
      }
    },
  };
}
