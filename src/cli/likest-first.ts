/** Sorts names by their similarity to the given one, so that a typo is seen at a glance. */
export function likestFirst(given: string, names: readonly string[]): string[] {
  return names.toSorted((a, b) => changesBetween(given, a) - changesBetween(given, b));
}

/** The Levenshtein distance. */
function changesBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (let at = 1; at <= to.length; at++) {
      const replaced = (row[at - 1] as number) + (letter === to[at - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[at] as number) + 1, (next[at - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
