import type { AppEvent } from '../core/events.ts';
import { printableText } from '../core/text.ts';
import type { Observation, Sink } from './event-bus.ts';

/** From the least to the most important; `silent` writes nothing. */
const levels = ['debug', 'info', 'warning', 'error', 'silent'] as const;
export type LogLevel = (typeof levels)[number];

export interface StderrParts {
  /** Writes one line, its end included, to stderr: stdout belongs to the protocol. */
  write(line: string): void;
  /** The least important level that is written. */
  level: LogLevel;
}

/** One readable line an event. */
export function createStderr({ write, level }: StderrParts): Sink {
  const least = levels.indexOf(level);
  return {
    name: 'stderr',
    write(observations) {
      for (const observation of observations) {
        const own = levelOf(observation.event);
        if (levels.indexOf(own) >= least) write(`${line(observation, own)}\n`);
      }
    },
  };
}

function levelOf(event: AppEvent): Exclude<LogLevel, 'silent'> {
  switch (event.type) {
    case 'call.start':
    case 'call.about':
    case 'call.stage':
    case 'program.step':
      return 'debug';
    case 'route.plan':
      return event.classifier?.failed === undefined ? 'debug' : 'info';
    case 'call.end':
      if (event.code === undefined || event.code === 'CANCELLED') return 'info';
      return event.code === 'INTERNAL_SERVER_ERROR' || event.code === 'STORAGE' ? 'error' : 'warning';
    case 'model.attempt':
      return event.outcome === 'ok' || event.outcome === 'cancelled' ? 'debug' : 'warning';
    case 'breaker.change':
      return event.to === 'open' || event.to === 'quarantined' ? 'warning' : 'info';
    case 'files.read':
      return event.skipped.length > 0 ? 'info' : 'debug';
    case 'files.written':
      return event.code === undefined ? 'info' : 'warning';
    case 'agent.call':
      return event.outcome === 'refused' ? 'warning' : 'debug';
    case 'thread.compacted':
      return 'info';
    case 'warning':
      return 'warning';
  }
}

function line({ at, event }: Observation, level: string): string {
  const time = new Date(at).toISOString();
  const call = event.reqId === undefined ? '' : ` [${event.reqId.slice(0, 8)}]`;
  // Names come from outside: they must neither forge a line nor steer the terminal.
  return `${time} ${level.padEnd(7)}${call} ${printableText(sentence(event)).replace(/[\r\n\t]/g, '\uFFFD')}`;
}

function sentence(event: AppEvent): string {
  switch (event.type) {
    case 'call.start':
      return `${event.tool}: called${event.client === undefined ? '' : ` by ${event.client}`}`;
    case 'call.about':
      return `${event.tool}: project ${event.workspace}${note(event.thread)}`;
    case 'call.stage':
      return `${event.tool}: ${event.stage}`;
    case 'call.end':
      return `${event.tool}: ${event.status}${note(event.code)} after ${seconds(event.elapsedMs)}`;
    case 'model.attempt':
      return attempt(event);
    case 'breaker.change':
      return breaker(event);
    case 'route.plan':
      return `${event.tool}: ${event.class} → ${event.chosen.join(', ')}${note(event.reasons.join('; '))}${classified(event.classifier)}`;
    case 'files.read':
      return `${event.tool}: files read: ${event.embedded.length}, skipped: ${event.skipped.length}${note(skips(event.skipped))}`;
    case 'files.written':
      return `${event.tool}: ${event.code === undefined ? 'wrote' : 'did not write'} ${event.path}${note(event.code)}`;
    case 'program.step':
      return `${event.tool}: ${event.program} ${event.step} ${event.name}${event.ok === false ? ', which failed' : ''}`;
    case 'agent.call':
      return `${event.tool}: ${event.name} ${event.outcome}${note(event.reason)}`;
    case 'thread.compacted':
      return `thread ${event.thread}: turns up to ${event.upToSeq} summed up for a window of ${event.window} tokens`;
    case 'warning':
      return `${event.where}: ${event.message}`;
  }
}

function attempt(event: Extract<AppEvent, { type: 'model.attempt' }>): string {
  const reason = [event.class, event.status].filter(part => part !== undefined).join(' ');
  const next = event.nextInMs === undefined ? after(event.next) : `, next attempt in ${seconds(event.nextInMs)}`;
  const tokens = event.usage === undefined ? '' : `, ${event.usage.input} tokens in, ${event.usage.output} out`;
  const what = `attempt ${event.attempt} at ${event.provider}:${event.model} ${event.outcome}${note(reason)}`;
  return `${event.tool}: ${what} after ${seconds(event.elapsedMs)}${tokens}${next}`;
}

const after = (next = 'none'): string => (next === 'none' ? '' : `, next ${next}`);

function breaker(event: Extract<AppEvent, { type: 'breaker.change' }>): string {
  const what = [event.provider, event.model].filter(part => part !== undefined).join(':');
  const wait = event.retryInMs === undefined ? '' : ` for ${seconds(event.retryInMs)}`;
  const counts = `${event.failures} of ${event.calls} failed, ${event.consecutive} in a row`;
  return `breaker of ${what} (${event.scope}): ${event.from} to ${event.to}${wait}${note(event.class)}; ${counts}`;
}

function classified(opinion: Extract<AppEvent, { type: 'route.plan' }>['classifier']): string {
  if (!opinion) return '';
  return `, ${opinion.asked ?? 'memory'} says ${opinion.told ?? `nothing: ${opinion.failed}`}`;
}

function skips(skipped: readonly { path: string; code: string }[]): string {
  const shown = skipped.slice(0, 3).map(({ path, code }) => `${path} ${code}`);
  return [...shown, ...(skipped.length > shown.length ? ['…'] : [])].join(', ');
}

const note = (text: string | undefined): string => (text === undefined || text === '' ? '' : ` (${text})`);

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(ms < 9_950 ? 1 : 0)} s`;
