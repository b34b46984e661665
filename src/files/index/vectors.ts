/** A vector in one byte a number: near enough for comparing, and a quarter of the size. */
export function packVector(vector: Float32Array): Int8Array {
  let most = 0;
  for (const value of vector) most = Math.max(most, Math.abs(value));
  return Int8Array.from(vector, value => (most === 0 ? 0 : Math.round((value / most) * 127)));
}

/** The cosine of the angle between two packed vectors; 0 where they can't be compared. */
export function nearness(a: Int8Array, b: Int8Array): number {
  if (a.length !== b.length) return 0;
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let at = 0; at < a.length; at++) {
    const x = a[at] ?? 0;
    const y = b[at] ?? 0;
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa * bb);
}

/** The constant of reciprocal rank fusion as its authors have it: high ranks count, but none decides alone. */
const flattening = 60;

/** Brings rankings of the same things together: each gives a thing one part in its place. */
export function fused<Key>(rankings: readonly (readonly Key[])[]): Map<Key, number> {
  const scores = new Map<Key, number>();
  for (const ranking of rankings) {
    for (const [place, key] of ranking.entries()) {
      scores.set(key, (scores.get(key) ?? 0) + 1 / (flattening + place + 1));
    }
  }
  return scores;
}
