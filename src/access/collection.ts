import type { Search } from '../people/people.ts';

/** What a step looks for, and whom it has to leave out. */
export interface Collection extends Search {
  /** Returns the ids of people who are being erased or were erased. Records that contain such an id are not collected. */
  readonly hiddenAmong: (ids: Iterable<string>) => Promise<ReadonlySet<string>>;
}
