import type { Clock } from '../../core/ports.ts';

export interface LiveStreamParts {
  clock: Pick<Clock, 'after'>;
  /** What is shown now; undefined once it will never change again. */
  render(): Promise<{ html: string; isOver: boolean }>;
  /** Calls `onNews` whenever it may be another, until the signal is aborted. */
  subscribe(onNews: () => void, signal: AbortSignal): void;
  /** Aborted when the reader is gone. */
  signal: AbortSignal;
  /** Whether the reader may still see it. */
  isAllowed(): boolean;
  onEnd(): void;
}

/** News come in bursts; a reader sees no more than a few pictures a second. */
const pauseMs = 200;
/** Without news it is drawn anew after this long: times go on, and a dead connection is found out. */
const quietMs = 10_000;
/** Pictures that wait for a slow reader. The next one replaces what it did not take yet. */
const mostWaiting = 2;

/** Server-sent events: a piece of a page, each time that it is another one. */
export function liveStream(parts: LiveStreamParts): Response {
  const gone = new AbortController();
  const encoder = new TextEncoder();
  let cancel = () => {};
  let last = '';

  const stop = () => {
    if (gone.signal.aborted) return;
    gone.abort();
    cancel();
    parts.onEnd();
  };

  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let isDrawing = false;
        let isStale = false;
        const tell = (text: string) => controller.enqueue(encoder.encode(text));
        const end = (text: string) => {
          if (gone.signal.aborted) return;
          tell(text);
          controller.close();
          stop();
        };
        const later = (ms: number) => {
          cancel();
          cancel = parts.clock.after(ms, () => void draw());
        };
        const draw = async () => {
          if (gone.signal.aborted) return;
          if (!parts.isAllowed()) return end('');
          isDrawing = true;
          isStale = false;
          try {
            const { html, isOver } = await parts.render();
            if (gone.signal.aborted) return;
            const hasRoom = (controller.desiredSize ?? 0) > 0;
            if (hasRoom) tell(html === last ? ': \n\n' : `data: ${JSON.stringify(html)}\n\n`);
            if (hasRoom) last = html;
            if (isOver && hasRoom) return end('event: over\ndata: 1\n\n');
            later(isStale || !hasRoom ? pauseMs : quietMs);
          } catch (error) {
            if (gone.signal.aborted) return;
            controller.error(error);
            stop();
          } finally {
            isDrawing = false;
          }
        };
        parts.signal.addEventListener('abort', stop, { once: true });
        if (parts.signal.aborted) return stop();
        parts.subscribe(() => {
          // What was heard while it was drawn is drawn once more; until the pause is over there is no need to look again.
          if (!isStale && !isDrawing) later(pauseMs);
          isStale = true;
        }, gone.signal);
        void draw();
      },
      cancel: stop,
    },
    { highWaterMark: mostWaiting },
  );
  return new Response(body, {
    headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' },
  });
}
