const steps = 10;

interface Step {
  at: number;
  all: number;
  marked: number;
}

/** How often something happened lately, and how often in the way that matters. What is older than the window falls out in tenths of it. */
export class RollingCounts {
  readonly #stepMs: number;
  readonly #steps: Step[] = [];

  constructor(windowMs: number) {
    this.#stepMs = windowMs / steps;
  }

  /** `now` in monotonic milliseconds. */
  add(now: number, all: number, marked: number): void {
    const at = Math.floor(now / this.#stepMs);
    let last = this.#steps.at(-1);
    if (last?.at !== at) {
      last = { at, all: 0, marked: 0 };
      this.#steps.push(last);
      this.#forget(at);
    }
    last.all += all;
    last.marked += marked;
  }

  sum(now: number): { all: number; marked: number } {
    this.#forget(Math.floor(now / this.#stepMs));
    const sum = { all: 0, marked: 0 };
    for (const { all, marked } of this.#steps) {
      sum.all += all;
      sum.marked += marked;
    }
    return sum;
  }

  clear(): void {
    this.#steps.length = 0;
  }

  #forget(at: number): void {
    while (this.#steps[0] && this.#steps[0].at <= at - steps) this.#steps.shift();
  }
}
