import type { AppEvent } from '../core/events.ts';
import { printableText } from '../core/text.ts';
import { isoTime, type Sink } from './event-bus.ts';

/** From the least to the most important; `silent` writes nothing. */
const levels = ['debug', 'info', 'warning', 'error', 'silent'] as const;
export type LogLevel = (typeof levels)[number];

/** One readable line an event; below the level nothing is put into words. `write` is for stderr: stdout belongs to the protocol. */
export function createStderr({ write, level }: { write(line: string): void; level: LogLevel }): Sink {
  const least = levels.indexOf(level);
  return {
    name: 'stderr',
    write(observations) {
      for (const { at, event } of observations) {
        const [own, sentence] = lineOf(event);
        if (levels.indexOf(own) < least) continue;
        const call = event.reqId === undefined ? '' : ` [${event.reqId.slice(0, 8)}]`;
        // Names come from outside: they must neither forge a line nor steer the terminal.
        const shown = printableText(sentence()).replace(/[\r\n\t]/g, '\uFFFD');
        write(`${isoTime(at)} ${own.padEnd(7)}${call} ${shown}\n`);
      }
    },
  };
}

function lineOf(event: AppEvent): readonly [Exclude<LogLevel, 'silent'>, () => string] {
  switch (event.type) {
    case 'call.start':
      return ['debug', () => `${event.tool}: called${event.client === undefined ? '' : ` by ${event.client}`}`];
    case 'call.about':
      return ['debug', () => `${event.tool}: project ${event.workspace}${note(event.thread)}`];
    case 'call.stage':
      return ['debug', () => `${event.tool}: ${event.stage}`];
    case 'call.end': {
      const isOurs = event.code === 'INTERNAL_SERVER_ERROR' || event.code === 'STORAGE';
      const level = event.code === undefined || event.code === 'CANCELLED' ? 'info' : isOurs ? 'error' : 'warning';
      return [level, () => `${event.tool}: ${event.status}${note(event.code)} after ${seconds(event.elapsedMs)}`];
    }
    case 'model.attempt':
      return [event.outcome === 'ok' || event.outcome === 'cancelled' ? 'debug' : 'warning', () => attempt(event)];
    case 'breaker.change':
      return [event.to === 'open' || event.to === 'quarantined' ? 'warning' : 'info', () => breaker(event)];
    case 'route.plan': {
      const why = () => `${note(event.reasons.join('; '))}${classified(event.classifier)}`;
      const level = event.classifier?.failed === undefined ? 'debug' : 'info';
      return [level, () => `${event.tool}: ${event.class} → ${event.chosen.join(', ')}${why()}`];
    }
    case 'files.read': {
      const { tool, embedded, skipped } = event;
      const text = () => `${tool}: files read: ${embedded.length}, skipped: ${skipped.length}${note(skips(skipped))}`;
      return [skipped.length > 0 ? 'info' : 'debug', text];
    }
    case 'files.written': {
      const { tool, code, path } = event;
      const text = () => `${tool}: ${code === undefined ? 'wrote' : 'did not write'} ${path}${note(code)}`;
      return [code === undefined ? 'info' : 'warning', text];
    }
    case 'program.step': {
      const { tool, program, step, name, ok } = event;
      return ['debug', () => `${tool}: ${program} ${step} ${name}${ok === false ? ', which failed' : ''}`];
    }
    case 'agent.call': {
      const { tool, name, outcome, reason } = event;
      return [outcome === 'refused' ? 'warning' : 'debug', () => `${tool}: ${name} ${outcome}${note(reason)}`];
    }
    case 'thread.compacted': {
      const { thread, upToSeq, window } = event;
      return ['info', () => `thread ${thread}: turns up to ${upToSeq} summarized for a window of ${window} tokens`];
    }
    case 'warning':
      return ['warning', () => `${event.where}: ${event.message}`];
  }
}

function attempt(event: Extract<AppEvent, { type: 'model.attempt' }>): string {
  const reason = [event.class, event.status].filter(part => part !== undefined).join(' ');
  const { nextInMs, next: step = 'none' } = event;
  const after = step === 'none' ? '' : `, next ${step}`;
  const next = nextInMs === undefined ? after : `, next attempt in ${seconds(nextInMs)}`;
  const tokens = event.usage === undefined ? '' : `, ${event.usage.input} tokens in, ${event.usage.output} out`;
  const what = `attempt ${event.attempt} at ${event.provider}:${event.model} ${event.outcome}${note(reason)}`;
  return `${event.tool}: ${what} after ${seconds(event.elapsedMs)}${tokens}${next}`;
}

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
