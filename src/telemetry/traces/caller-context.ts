import { type Context, createTraceState, type Link, ROOT_CONTEXT, type SpanContext, trace } from '@opentelemetry/api';
import type { CallerTrace } from '../../core/tool-host.ts';

/** What the span of a call is a part of, and what it is linked to. */
export function contextOf(given: CallerTrace | undefined): { context: Context; links: Link[] } {
  const parent = given && spanOf(given.parent, given.state);
  const link = given?.link === undefined ? undefined : spanOf(given.link);
  return {
    context: parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT,
    links: link ? [{ context: link }] : [],
  };
}

/** Undefined for what is no span: the mask may have made something else of it. */
function spanOf(text: string, state?: string): SpanContext | undefined {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return {
    traceId,
    spanId,
    // Of the flags, only whether it is recorded means something to us.
    traceFlags: Number.parseInt(flags, 16) & 1,
    isRemote: true,
    ...(state !== undefined && { traceState: createTraceState(state) }),
  };
}
