import type { Rejection } from '../../api/types.ts';

export interface MissingId {
  readonly id: string;
  readonly count: number;
}

/** Counts the missing ids in a field. The most frequent id comes first. */
export function countMissingIds(
  rejections: readonly Pick<Rejection, 'record' | 'errors'>[],
  field: string,
): MissingId[] {
  const counts = new Map<string, number>();
  for (const { record, errors } of rejections) {
    const isMissing = errors.some((error) => error.field === field && error.code === 'reference_not_found');
    const id = isMissing && isObject(record) ? record[field] : undefined;
    if (typeof id === 'string') counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return [...counts]
    .map(([id, count]) => ({ id, count }))
    .toSorted((one, other) => other.count - one.count || (one.id < other.id ? -1 : 1));
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
