/** The known name that is closest to a mistyped one; undefined when none is close. */
export function nearName(name: string, known: Iterable<string>): string | undefined {
  const wanted = plain(name);
  let best: { name: string; distance: number } | undefined;
  for (const candidate of known) {
    const limit = Math.min(best ? best.distance - 1 : 3, Math.floor(wanted.length / 4));
    const distance = editDistance(wanted, plain(candidate), limit);
    if (distance <= limit) best = { name: candidate, distance };
  }
  return best?.name;
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9.]/g, '');
}

/** Insertions, deletions and replacements between two names; more than `limit` is answered as `limit + 1`. */
function editDistance(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) > limit) return limit + 1;
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return Math.min(row[to.length] ?? 0, limit + 1);
}
