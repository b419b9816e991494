import { editDistance } from '../../settings.ts';

/** Sorts names by their similarity to the given one, so that a typo is seen at a glance. */
export function likestFirst(given: string, names: readonly string[]): string[] {
  return names.toSorted((a, b) => editDistance(given, a) - editDistance(given, b));
}

/** The name that was probably meant: within two letters, or with the same beginning. */
export function meantName(given: string, names: readonly string[]): string | undefined {
  const [likest] = likestFirst(given.slice(0, 100), names);
  if (likest === undefined || given === '') return undefined;
  return editDistance(given.slice(0, 100), likest) <= 2
    ? likest
    : names.find((name) => name.startsWith(given));
}
