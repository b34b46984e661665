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

/** Insertions, deletions, replacements and swaps of neighbours between two names; at most `limit + 1` is answered. */
function editDistance(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) > limit) return limit + 1;
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      const swaps = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const swapped = swaps ? (before[j - 2] ?? 0) + 1 : replaced;
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return Math.min(row[to.length] ?? 0, limit + 1);
}
