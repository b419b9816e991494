/** Returns the most similar candidate, or undefined if even that one is too different to be a typo. */
export function nearest(name: string, candidates: readonly string[], changesMax: number): string | undefined {
  const distances = candidates.map((each) => ({ each, distance: editDistance(name, each) }));
  const [best] = distances.sort((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= changesMax ? best.each : undefined;
}

/** Returns the Levenshtein distance between two strings. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 1; at <= one.length; at++) {
    const next = [at];
    for (let to = 1; to <= other.length; to++) {
      const change = (row[to - 1] as number) + (one[at - 1] === other[to - 1] ? 0 : 1);
      next.push(Math.min(change, (row[to] as number) + 1, (next[to - 1] as number) + 1));
    }
    row = next;
  }
  return row[other.length] as number;
}
