import type { Clock } from '../../core/ports.ts';

/** An answer that is there by then has a status of its own. */
const atOnceMs = 5_000;
/** Shorter than what proxies and clients wait for a word. */
const keepAliveMs = 15_000;

/** An answer as it is, or, where it takes long, a stream that says at once that somebody works on it. */
export async function patientResponse(answer: Promise<Response>, clock: Pick<Clock, 'after'>): Promise<Response> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const stop = clock.after(atOnceMs, () => resolve(undefined));
  try {
    return (await Promise.race([answer, late])) ?? streamed(answer, clock);
  } finally {
    stop();
  }
}

function streamed(answer: Promise<Response>, clock: Pick<Clock, 'after'>): Response {
  const encoder = new TextEncoder();
  let isOver = false;
  let stop = () => {};
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const tell = (bytes: Uint8Array) => {
        if (!isOver) controller.enqueue(bytes);
      };
      const beat = () => {
        tell(encoder.encode(': keepalive\n\n'));
        stop = clock.after(keepAliveMs, beat);
      };
      beat();
      const end = (close: () => void) => {
        stop();
        if (!isOver) close();
        isOver = true;
      };
      // Not awaited: the stream is there for its reader while the work goes on.
      pass(answer, tell, () => isOver).then(
        () => end(() => controller.close()),
        error => end(() => controller.error(error)),
      );
    },
    cancel() {
      isOver = true;
      stop();
    },
  });
  const headers = {
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-cache, no-transform',
    'X-Accel-Buffering': 'no',
  };
  return new Response(body, { headers });
}

async function pass(
  answer: Promise<Response>,
  tell: (bytes: Uint8Array) => void,
  isOver: () => boolean,
): Promise<void> {
  const response = await answer;
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  if (!isStream) {
    const text = await response.text();
    if (text !== '') tell(new TextEncoder().encode(`event: message\ndata: ${text}\n\n`));
    return;
  }
  const reader = response.body?.getReader();
  for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
    if (isOver()) return void reader?.cancel();
    tell(next.value);
  }
}
