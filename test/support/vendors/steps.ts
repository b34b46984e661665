import type { Dialect, Step } from './fake-vendor.ts';

export interface Steps {
  queue(steps: readonly Step[]): void;
  setDefault(step: Step): void;
  /** Takes the first queued step for this dialect, else the default one where it fits, else a plain answer. */
  next(dialect: Dialect): Step;
}

export function createSteps(): Steps {
  const queued: Step[] = [];
  let fallback: Step = {};
  const fits = (step: Step, dialect: Dialect) =>
    step.on ? step.on === dialect : dialect !== 'models' && dialect !== 'count';
  return {
    queue: steps => void queued.push(...steps),
    setDefault(step) {
      fallback = step;
    },
    next(dialect) {
      const at = queued.findIndex(step => fits(step, dialect));
      const [queuedStep] = at === -1 ? [] : queued.splice(at, 1);
      return queuedStep ?? (fits(fallback, dialect) ? fallback : {});
    },
  };
}
