import type { People } from '../people/people.ts';

/** The running access requests of an organisation, which are collected together: a pass over the data serves all of them. */
export interface Collection extends People {
  /** The requests that look for each id. */
  readonly ids: ReadonlyMap<string, readonly Wanted[]>;
  /** The ids of people who are being erased: nothing that names one of them is collected. */
  readonly hidden: ReadonlySet<string>;
}

export interface Wanted {
  readonly request: string;
  /** Whether it is a user who was only seen together with a customer that was asked for. Others may use the same device. */
  readonly isInferred: boolean;
}

/** Something that is stored about people. */
export interface CollectedRecord {
  readonly id: string;
  /** JSON. */
  readonly record: string;
  /** All ids of people in it. */
  readonly people: readonly string[];
  /** The access requests that it belongs to. */
  readonly requests: readonly string[];
}

/**
 * The access requests that want a record with these people in it, each once. What has a student belongs to that student: a user who
 * was only seen together with somebody does not make it theirs.
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
