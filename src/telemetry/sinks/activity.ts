import type { Clock } from '../../core/ports.ts';
import { addUsage, noUsage, type Usage } from '../../core/usage.ts';
import { createRotatingLog, type LogRecord, type LogRules } from '../../observability/file-logs.ts';
import { createOpenCalls, type OpenCall } from '../log/open-calls.ts';
import type { Observation, Sink } from '../sink.ts';

interface Notes {
  /** As `provider:model`, in the order in which they were asked first. */
  models: Set<string>;
  attempts: number;
  usage: Usage;
  /** US dollars of the attempts whose price is known. */
  costUsd: number;
  filesSent: number;
}

/** `activity.jsonl`: one line when a call begins and one with all that it came to when it ends. */
export function createActivity(rules: LogRules, clock: Pick<Clock, 'now'>): Sink {
  const log = createRotatingLog('activity', rules);
  const calls = createOpenCalls<Notes>(() => ({
    models: new Set(),
    attempts: 0,
    usage: noUsage,
    costUsd: 0,
    filesSent: 0,
  }));
  return {
    name: 'activity',
    write: observations => log.append(observations.flatMap(observation => linesOf(observation, calls.of(observation)))),
    close: () => log.append(calls.left().map(call => endOf(clock.now(), call, { status: 'unfinished' }))),
  };
}

function linesOf({ at, event }: Observation, call: OpenCall<Notes> | undefined): LogRecord[] {
  if (!call) return [];
  const { notes, ...who } = call;
  switch (event.type) {
    case 'call.start':
      return [{ at, fields: { act: 'begin', ...who } }];
    case 'model.attempt':
      if (event.outcome === 'skipped') return [];
      notes.models.add(`${event.provider}:${event.model}`);
      notes.attempts++;
      notes.usage = addUsage(notes.usage, event.usage ?? noUsage);
      notes.costUsd += event.costUsd ?? 0;
      return [];
    case 'files.read':
      notes.filesSent += event.embedded.length;
      return [];
    case 'call.end': {
      const { status, code, elapsedMs } = event;
      return [endOf(at, call, { status, code, elapsedMs })];
    }
    default:
      return [];
  }
}

function endOf(at: number, { notes, ...who }: OpenCall<Notes>, how: object): LogRecord {
  const { models, ...sums } = notes;
  return { at, fields: { act: 'end', ...who, ...how, models: [...models], ...sums } };
}
