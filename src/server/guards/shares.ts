/** How many of something there may be at the same time. */
export interface ShareLimits {
  /** Of one name, at the moment. */
  ofOne(): number;
  inAll: number;
}

/** Takes a place for a name: answers what gives it back, or undefined where there is none for it. */
export type Shares = (name: string) => (() => void) | undefined;

/** Counts places by the names of those who have them. */
export function createShares({ ofOne, inAll }: ShareLimits): Shares {
  const counts = new Map<string, number>();
  let all = 0;
  return name => {
    const own = counts.get(name) ?? 0;
    if (own >= ofOne() || all >= inAll) return undefined;
    all += 1;
    counts.set(name, own + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      all -= 1;
      const left = (counts.get(name) ?? 1) - 1;
      if (left > 0) counts.set(name, left);
      else counts.delete(name);
    };
  };
}
