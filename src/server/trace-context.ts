import type { CallerTrace } from '../core/tool-host.ts';

/** Longer ones are not passed on, as the recommendation allows. */
const longestState = 512;

type Meta = Readonly<Record<string, unknown>>;

/**
 * The caller's trace: what the call itself says in its `_meta` (SEP-414), else the headers of the request that brought it. What
 * is malformed is passed over, for no call fails because of its traces.
 */
export function callerTrace(meta: Meta | undefined, headers: Headers | undefined): { trace?: CallerTrace } {
  const own = parentIn(meta?.traceparent);
  const transport = parentIn(headers?.get('traceparent'));
  const parent = own ?? transport;
  if (parent === undefined) return {};
  const state = stateIn(own === undefined ? headers?.get('tracestate') : meta?.tracestate);
  const link = own === undefined || transport === own ? undefined : transport;
  return { trace: { parent, ...(state !== undefined && { state }), ...(link !== undefined && { link }) } };
}

/** As version 00 writes it; later versions begin the same way. */
function parentIn(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > longestState) return undefined;
  const [, version, trace, span, flags, more] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(value.trim()) ?? [];
  if (trace === undefined || span === undefined || flags === undefined || version === 'ff') return undefined;
  if (/^0+$/.test(trace) || /^0+$/.test(span) || (version === '00' && more !== undefined)) return undefined;
  return `00-${trace}-${span}-${flags}`;
}

function stateIn(value: unknown): string | undefined {
  const isState = typeof value === 'string' && value.length <= longestState && /^[\x20-\x7e]+$/.test(value);
  return isState ? value : undefined;
}
