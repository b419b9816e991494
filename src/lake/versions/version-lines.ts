import type { Part } from '../../changes/read-changes.ts';
import { joinUuidRanges } from '../../postgres/binary/encoded-rows.ts';
import { type Pool, withClient } from '../../postgres/pool.ts';
import { readPage, takeRecords } from '../../records/read-records.ts';
import { idFieldOf, perType, type Resource, type ResourceType, resources } from '../../registry/resources.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import { lakeLimits } from '../limits.ts';
import type { Spool } from '../spool.ts';

/** A record that has changed again in the meantime appears a second time later, with a larger number. */
export async function readChanged(
  pool: Pool,
  organisationId: string,
  type: ResourceType,
  parts: readonly Part[],
  spool: Spool,
): Promise<void> {
  if (parts.length === 0) return;
  const numbers = parts.flatMap(({ number, start, end }) => new Array<number>(end - start).fill(number));
  let at = 0;
  await withClient(pool, (client) =>
    takeRecords(client, organisationId, type, joinUuidRanges(parts).ids, (id, record) => {
      const number = numbers[at++] as number;
      if (record !== 'null') spool.addVersion(type, lineOf(record, number));
      // The record's person was erased or is being erased. A row that marks the deletion would preserve the person's id,
      // so no such row is written. The erasure removes that person's rows.
      else if (!isIdOfPerson(type)) spool.addVersion(type, removedLine(type, id, number));
    }),
  );
}

/** Returns the id up to which everything has been read, or null at the end. The rows get the change number `number`. */
export async function readStoredVersions(
  pool: Pool,
  organisationId: string,
  type: ResourceType,
  { after, number }: { readonly after: string; readonly number: number },
  spool: Spool,
  stopping: AbortSignal,
): Promise<string | null> {
  const asked = { organisationId, type, includeDeleted: true, storedSince: undefined, equal: {} };
  for (let last: string | null = after; last !== null; ) {
    if (spool.isFull || stopping.aborted) return last;
    // The first UUID is a valid id, so the first page must not skip it.
    const page = await readPage(
      pool,
      { ...asked, after: last === firstUuid ? undefined : last },
      lakeLimits.rowsPerRead,
    );
    for (const record of page.records) spool.addVersion(type, lineOf(record, number));
    await spool.drain();
    last = page.next;
  }
  return null;
}

function lineOf(record: string, number: number): string {
  // Quotes in values are escaped, so this can match only the field itself.
  const isDeleted = record.includes('"is_deleted":true');
  return `{"_change":${number},"_deleted":${isDeleted},${record.slice(1)}`;
}

function removedLine(type: ResourceType, id: string, number: number): string {
  return `{"_change":${number},"_deleted":true,"${idFieldOf(type)}":"${id}"}`;
}

const isIdOfPerson = perType((type) => {
  const { fields }: Resource = resources[type];
  return fields[idFieldOf(type)]?.personal === 'identifies';
});
