import type { People } from '../people/people.ts';

/** An organisation's running access requests. They share one pass over the data. */
export interface Collection extends People {
  /** For each id, the requests that look for it. */
  readonly ids: ReadonlyMap<string, readonly Wanted[]>;
  /** The ids of people who are being erased. Records that contain one of these ids are not collected. */
  readonly hidden: ReadonlySet<string>;
}

export interface Wanted {
  readonly request: string;
  /**
   * True if the request does not list this user, who only occurred together with a requested customer. Other people may
   * use the same device.
   */
  readonly isInferred: boolean;
}

/** A stored record about people. */
export interface CollectedRecord {
  readonly id: string;
  /** The record as JSON. */
  readonly record: string;
  /** All people's ids in the record. */
  readonly people: readonly string[];
  /** The access requests that the record belongs to. */
  readonly requests: readonly string[];
}

/**
 * Returns the access requests that match a record about these people, without duplicates. A record with a student belongs
 * only to that student, even if one of its users also occurred together with another person.
 */
export function requestsOf(
  { ids }: Collection,
  people: readonly string[],
  student?: string | null,
): string[] {
  const isOfAnother = (request: string) =>
    student != null && !ids.get(student)?.some((wanted) => wanted.request === request);
  const wanted = people.flatMap((id) => ids.get(id) ?? []);
  return [
    ...new Set(
      wanted.flatMap(({ request, isInferred }) => (isInferred && isOfAnother(request) ? [] : request)),
    ),
  ];
}
