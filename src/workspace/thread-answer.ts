import { bugError, cancelledError, isAppError, limitError, throwIfAborted } from '../core/errors.ts';
import { errorCode } from './paths.ts';

/** What is said of a thread that gave no answer; it `ended`, it `failed`, or its memory was `tooMuch` for it. */
export interface ThreadWords extends Record<'ended' | 'failed' | 'tooMuch' | 'next', string> {}

/** The next message of a thread that was asked something. It keeps the process alive meanwhile. */
export async function answerOf<Answer>(
  worker: NodeJS.EventEmitter & { ref(): void },
  signal: AbortSignal | undefined,
  words: ThreadWords,
  ask: () => void = () => undefined,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const abort = () => reject(reasonOf(signal));
  const onExit = (code: number) => reject(bugError(`${words.ended} ended with code ${code} and no answer.`));
  const onError = (error: unknown) => reject(threadError(error, words));
  worker.on('message', resolve).on('error', onError).on('exit', onExit);
  worker.ref();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    throwIfAborted(signal);
    ask();
    return await promise;
  } finally {
    signal?.removeEventListener('abort', abort);
    worker.off('message', resolve).off('error', onError).off('exit', onExit);
  }
}

export function reasonOf(signal: AbortSignal | undefined): Error {
  return isAppError(signal?.reason) ? signal.reason : cancelledError();
}

function threadError(error: unknown, { failed, tooMuch, next }: ThreadWords): Error {
  if (errorCode(error) !== 'ERR_WORKER_OUT_OF_MEMORY') return bugError(failed, error);
  return limitError('size', tooMuch, { next, cause: error });
}
