import type { ErrorCode } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { createRotatingLog, type LogRecord, type LogRules } from '../../observability/file-logs.ts';
import { createOpenCalls, type OpenCall } from '../log/open-calls.ts';
import type { Observation, Sink } from '../sink.ts';

/** What a call is refused with, as against what goes wrong in one that was allowed. */
const refusals: readonly ErrorCode[] = ['SECURITY', 'LIMIT', 'TOOL_NOT_FOUND'];
/** Why a file is kept from models; anything else (its size, its kind, no such file) is no decision about the caller. */
const forbidden: readonly string[] = ['outside_roots', 'secret', 'not_regular'];

/**
 * `audit.jsonl`: who called what, which files were read and written for it, and what was refused. A `begin` without a `call`
 * is a call whose process died.
 */
export function createAudit(rules: LogRules, clock: Pick<Clock, 'now'>): Sink {
  const log = createRotatingLog('audit', rules);
  const calls = createOpenCalls(() => undefined);
  return {
    name: 'audit',
    write: observations => log.append(observations.flatMap(observation => linesOf(observation, calls.of(observation)))),
    close: () => log.append(calls.left().map(call => lineOf(clock.now(), call, 'call', { status: 'unfinished' }))),
  };
}

function lineOf(at: number, { notes: _, ...who }: OpenCall<undefined>, act: string, rest: object = {}): LogRecord {
  return { at, fields: { act, ...who, ...rest } };
}

function linesOf({ at, event }: Observation, call: OpenCall<undefined> | undefined): LogRecord[] {
  if (!call) return [];
  const line = (act: string, refused: boolean, rest: object = {}): LogRecord =>
    lineOf(at, call, act, { decision: refused ? 'refused' : 'allowed', ...rest });
  switch (event.type) {
    case 'call.start':
      return [lineOf(at, call, 'begin')];
    case 'files.read': {
      const refused = event.skipped.filter(({ code }) => forbidden.includes(code));
      return [
        ...(event.embedded.length > 0 ? [line('read', false, { files: event.embedded })] : []),
        ...refused.map(({ path, code }) => line('read', true, { files: [path], reason: code })),
      ];
    }
    case 'files.written': {
      const { path, code } = event;
      const refused = code !== undefined && refusals.includes(code);
      const failed = code !== undefined && !refused;
      return [line('write', refused, { files: [path], ...(failed && { outcome: 'failed' }), reason: code })];
    }
    case 'agent.call': {
      const { name, outcome, args, reason } = event;
      return [line('agent', outcome === 'refused' || outcome === 'invalid', { name, outcome, args, reason })];
    }
    case 'call.end': {
      const { status, code, reason } = event;
      return [line('call', code !== undefined && refusals.includes(code), { status, code, reason })];
    }
    default:
      return [];
  }
}
