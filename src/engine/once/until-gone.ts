import { cancelledError } from '../../core/errors.ts';
import type { ToolHost, ToolReply, ToolRequest } from '../../core/tool-host.ts';

/** Runs a call that ends with its caller, whether he cancelled it or is merely gone. */
export async function untilGone(request: ToolRequest, signal: AbortSignal, run: ToolHost['call']): Promise<ToolReply> {
  const gone = request.session?.gone;
  if (!gone) return run(request, signal);
  const stop = new AbortController();
  const onCancel = () => stop.abort(signal.reason);
  const onGone = () => stop.abort(cancelledError('The connection was closed.'));
  if (signal.aborted) onCancel();
  if (gone.aborted) onGone();
  signal.addEventListener('abort', onCancel, { once: true });
  gone.addEventListener('abort', onGone, { once: true });
  try {
    return await run(request, stop.signal);
  } finally {
    signal.removeEventListener('abort', onCancel);
    gone.removeEventListener('abort', onGone);
  }
}
