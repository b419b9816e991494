import { mapInTurns } from '../json/map-in-turns.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { isBeingErased } from '../records/tables.ts';
import { isUuid } from '../registry/fields.ts';
import { uuidPattern } from './ids-in-text.ts';

const idsPerQuery = 1_000;

const noIds: ReadonlySet<string> = new Set();

/**
 * For texts and the open ids in them. In another snapshot, the ids of an erasure that has been swept since the texts were
 * read would no longer be open.
 */
export function inOneSnapshot<T>(
  pool: Pick<Pool, 'connect'>,
  read: (client: Client) => Promise<T>,
): Promise<T> {
  return inTransaction(pool, read, 'begin isolation level repeatable read read only');
}

/** Searching texts took most of the time of a page of rejections, so it is skipped if nobody is being erased. */
export async function openIdsIn<T>(
  db: Pick<Pool, 'query'>,
  organisationId: string,
  texts: readonly T[],
  idsIn: (text: T) => readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ is_any: boolean }>({
    name: 'whether people are being erased',
    text: 'select exists (select from erasure_ids where organisation_id = $1) as is_any',
    values: [organisationId],
  });
  if (rows[0]?.is_any === false) return noIds;
  return openIdsAmong(db, organisationId, (await mapInTurns(texts, idsIn)).flat());
}

/** Nobody may read these ids. Customers of erased users count too, because the sweep may not have found them yet. */
export async function openIdsAmong(
  db: Pick<Pool, 'query'>,
  organisationId: string,
  ids: Iterable<string>,
): Promise<ReadonlySet<string>> {
  const open = new Set<string>();
  const asked = [...new Set(ids)];
  for (let at = 0; at < asked.length; at += idsPerQuery) {
    const slice = asked.slice(at, at + idsPerQuery);
    const { rows } = await db.query<{ id: string }>({
      name: 'ids of people being erased',
      text: `
        select id from erasure_ids where organisation_id = $1 and id = any ($2::text[])
        union all
        select customer_id::text from customers c
        where organisation_id = $1 and customer_id = any ($3::uuid[]) and ${isBeingErased('c.user_id::text')}`,
      values: [organisationId, slice, slice.filter(isUuid)],
    });
    for (const { id } of rows) open.add(id);
  }
  return open;
}

export function answerWithout(ids: { has(id: string): boolean }, answer: string): string {
  return answer.replaceAll(new RegExp(`"(${uuidPattern.source})"`, 'gi'), (quoted, id: string) =>
    ids.has(id.toLowerCase()) ? 'null' : quoted,
  );
}
