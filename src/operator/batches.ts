/** A log that can be read several times. It may be larger than the memory, so it is read from a file in batches. */
export type Saved<T> = Iterable<T> | AsyncIterable<T>;

/** A batch contains at most `countMax` entries, and only entries with the same key. */
export async function* inBatches<T>(
  entries: Saved<T>,
  countMax: number,
  keyOf: (entry: T) => unknown = () => undefined,
): AsyncGenerator<readonly T[]> {
  let batch: T[] = [];
  let key: unknown;
  for await (const entry of entries) {
    const isOther = keyOf(entry) !== key;
    if (batch.length === countMax || (isOther && batch.length > 0)) {
      yield batch;
      batch = [];
    }
    key = keyOf(entry);
    batch.push(entry);
  }
  if (batch.length > 0) yield batch;
}

/**
 * Groups entries by key. Entries with the same key must follow one another. A group can be read only until the next one
 * is requested, which skips the rest.
 */
export async function* inGroups<T>(
  entries: Saved<T>,
  countMax: number,
  keyOf: (entry: T) => string,
): AsyncGenerator<readonly [key: string, batches: AsyncIterable<readonly T[]>]> {
  const batches = inBatches(entries, countMax, keyOf);
  let next = await batches.next();
  const keyOfNext = () => (next.done ? undefined : keyOf(next.value[0] as T));
  async function* batchesWith(key: string) {
    for (; !next.done && keyOfNext() === key; next = await batches.next()) yield next.value;
  }
  try {
    for (let key = keyOfNext(); key !== undefined; key = keyOfNext()) {
      yield [key, batchesWith(key)];
      // Skip what was not read.
      for await (const _ of batchesWith(key));
    }
  } finally {
    await batches.return(undefined);
  }
}
