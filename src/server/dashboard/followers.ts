/** How many pages follow what happens at the same time. */
export interface FollowerLimits {
  ofOwner: number;
  inAll: number;
}

/** Counts them: answers what ends one, or undefined where there are too many. */
export function createFollowers({ ofOwner, inAll }: FollowerLimits): (owner: string) => (() => void) | undefined {
  const counts = new Map<string, number>();
  let all = 0;
  return owner => {
    const own = counts.get(owner) ?? 0;
    if (own >= ofOwner || all >= inAll) return undefined;
    all += 1;
    counts.set(owner, own + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      all -= 1;
      const left = (counts.get(owner) ?? 1) - 1;
      if (left > 0) counts.set(owner, left);
      else counts.delete(owner);
    };
  };
}
