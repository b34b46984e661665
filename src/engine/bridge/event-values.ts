import { isRecord, numberIn } from '../../core/json.ts';
import { cutMiddle } from '../../core/text.ts';
import { noUsage, type Usage } from '../../core/usage.ts';
import type { CliEvent } from '../../providers/external-cli/clis/cli.ts';

const longestDetail = 500;

/** Anything that an event brings along, as a short text for the log. */
export function detailOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return cutMiddle(text, longestDetail);
}

/** An event when there is something to tell. */
export function when(condition: unknown, event: CliEvent): CliEvent[] {
  return condition === undefined || condition === '' || condition === false ? [] : [event];
}

/** Token counts by the names under which they stand in `counts`; what is not told is nought. */
export function usageFrom(
  counts: Record<string, unknown>,
  names: Partial<Record<'input' | 'output' | 'reasoning' | 'cacheRead' | 'cacheWrite', string>>,
): Usage {
  const count = (name: string | undefined) => {
    const value = name === undefined ? 0 : numberIn(counts[name]);
    return Number.isFinite(value) && value > 0 ? Math.floor(value) : 0;
  };
  return {
    ...noUsage,
    input: count(names.input),
    output: count(names.output),
    reasoning: count(names.reasoning),
    cacheRead: count(names.cacheRead),
    cacheWrite: count(names.cacheWrite),
  };
}

/** The message of an error, however it is wrapped. */
export function messageIn(value: unknown): string {
  if (typeof value === 'string') return value;
  if (!isRecord(value)) return '';
  const { message, error, data } = value;
  if (typeof message === 'string') return message;
  return messageIn(error) || (isRecord(data) ? messageIn(data) : '');
}
