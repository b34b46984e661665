import { throwIfAborted } from '../../core/errors.ts';
import type { UserAnswer, UserQuestion } from '../../core/tool-host.ts';

/** The questions that a piece of work has for its caller, until they are answered. */
export interface Questions {
  /** Resolves with the caller's answer; rejects when the work is ended before. */
  ask(question: UserQuestion, signal: AbortSignal): Promise<UserAnswer>;
  pending(): readonly UserQuestion[];
  /** An answer to what was not asked, or was answered before, changes nothing. */
  answer(key: string, answer: UserAnswer): void;
}

export function createQuestions(): Questions {
  const open = new Map<string, { question: UserQuestion; resolve: (answer: UserAnswer) => void }>();
  return {
    ask(question, signal) {
      return new Promise((resolve, reject) => {
        const { key } = question;
        const onAbort = () => {
          open.delete(key);
          try {
            throwIfAborted(signal);
          } catch (error) {
            reject(error);
          }
        };
        if (signal.aborted) return onAbort();
        signal.addEventListener('abort', onAbort, { once: true });
        open.set(key, {
          question,
          resolve(answer) {
            signal.removeEventListener('abort', onAbort);
            resolve(answer);
          },
        });
      });
    },
    pending: () => [...open.values()].map(({ question }) => question),
    answer(key, answer) {
      const asked = open.get(key);
      open.delete(key);
      asked?.resolve(answer);
    },
  };
}
