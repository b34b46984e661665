import { createRotatingLog, type LogRules } from '../../observability/file-logs.ts';
import type { Sink } from '../sink.ts';

/** `breadcrumbs.jsonl`: every event with its `type` and its own fields. */
export function createBreadcrumbs(rules: LogRules): Sink {
  const log = createRotatingLog('breadcrumbs', rules);
  return {
    name: 'breadcrumbs',
    write: observations => log.append(observations.map(({ at, event }) => ({ at, fields: event }))),
  };
}
