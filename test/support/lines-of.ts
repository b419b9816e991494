/** Parses text with a line of JSON for each entry. */
// biome-ignore lint/suspicious/noExplicitAny: the entries of several commands have different shapes.
export function linesOf(text: string): any[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
