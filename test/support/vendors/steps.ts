import type { RecordedRequest, Step } from './fake-vendor.ts';

export interface Steps {
  queue(steps: readonly Step[]): void;
  setDefault(step: Step): void;
  /** Takes the first queued step for this request, else the default one where it fits, else a plain answer. */
  next(request: Pick<RecordedRequest, 'dialect' | 'canonical'>): Step;
}

export function createSteps(): Steps {
  const queued: Step[] = [];
  let fallback: Step = {};
  const fits = (step: Step, { dialect, canonical }: Pick<RecordedRequest, 'dialect' | 'canonical'>) =>
    (step.on ? step.on === dialect : dialect !== 'models' && dialect !== 'count') &&
    (step.about === undefined || canonical.includes(step.about));
  return {
    queue: steps => void queued.push(...steps),
    setDefault(step) {
      fallback = step;
    },
    next(request) {
      const at = queued.findIndex(step => fits(step, request));
      const [queuedStep] = at === -1 ? [] : queued.splice(at, 1);
      return queuedStep ?? (fits(fallback, request) ? fallback : {});
    },
  };
}
