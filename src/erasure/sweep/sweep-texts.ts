import type { Place } from '../../jobs/job.ts';
import { mapInTurns } from '../../json/map-in-turns.ts';
import { limits } from '../../limits.ts';
import { type Search, wantedAmong, wantedIds } from '../../people/people.ts';
import { keyTables, readAnswerTexts, readKeys, readRejectionTexts } from '../../people/read-texts.ts';
import type { Client } from '../../postgres/pool.ts';
import { queryRows } from '../../postgres/transactions.ts';
import { isUuid } from '../../registry/fields.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import { countChange } from '../../rejections/rejection-kinds.ts';
import { deleteLocked, lockRejections } from '../../rejections/rejections.ts';
import { newestUnsettled, settleUpTo } from '../../rejections/unsettled-batches.ts';
import { eraseFromReport } from '../../reports/erase-from-report.ts';
import { answerWithout } from '../../suppression/hidden-ids.ts';
import { type KeyTable, replaceKeys } from '../../suppression/idempotency-keys.ts';
import { withoutErased } from '../../suppression/ids-in-text.ts';
import { countErased } from './sweep-rows.ts';
import type { Swept } from './sweep-step.ts';

const searchOf = ({ organisationId }: Place): Search => ({ organisationId, for: 'erasures' });

/** The report's figures stay, without the data from which they were calculated. */
export async function sweepReport(client: Client, place: Place): Promise<Swept> {
  const { rows } = await client.query<{ id: string }>(
    `select distinct i.id from ${wantedIds(searchOf(place))} and i.id > $2 order by i.id limit ${limits.peoplePerSearch}`,
    [place.organisationId, place.position ?? ''],
  );
  const ids = rows.map(({ id }) => id);
  const students = ids.filter(isUuid);
  const hasMore = students.length > 0 && (await eraseFromReport(client, place.organisationId, students));
  if (hasMore) return { next: { step: 'report', position: place.position } };
  const isLast = ids.length < limits.peoplePerSearch;
  return { next: isLast ? { step: 'rows' } : { step: 'report', position: ids.at(-1) } };
}

interface Text {
  readonly ids: readonly string[];
}

/** Returns the texts with ids of people who are being erased. Each text counts for the first erasure found. */
async function textsOfErased<T extends Text>(client: Client, place: Place, texts: readonly T[]) {
  const ids = texts.flatMap((text) => text.ids);
  const wanted = await wantedAmong(client, searchOf(place), ids);
  const found = texts.filter((text) => text.ids.some((id) => wanted.has(id)));
  const erasureOf = (text: Text) => text.ids.flatMap((id) => wanted.get(id) ?? [])[0]?.request ?? [];
  return { wanted, found, erasureOf };
}

interface RejectionsPlace {
  /** These batches may have settled rejections, and contain ids themselves. They are settled first. */
  readonly settleUpTo?: string;
  readonly after: string | null;
}

/**
 * Deletes people's rejections, whatever the reason for the failure, and clears their ids in other people's failed
 * records.
 */
export async function sweepRejections(client: Client, place: Place): Promise<Swept> {
  const { organisationId } = place;
  const at = (place.position ?? {
    settleUpTo: await newestUnsettled(client, organisationId),
    after: null,
  }) as RejectionsPlace;
  if (at.settleUpTo !== undefined) {
    const { done, isSettled } = await settleUpTo(client, organisationId, at.settleUpTo);
    return { next: { step: 'rejections', position: isSettled ? { after: null } : at }, done };
  }
  const { texts, next } = await readRejectionTexts(client, organisationId, at.after);
  const { wanted, found, erasureOf } = await textsOfErased(client, place, texts);
  const idsOf = (some: typeof found) => some.map(({ rejection_id }) => rejection_id);
  const locked = await lockRejections(client, organisationId, idsOf(found));
  const there = found.filter(({ rejection_id }) => locked.has(rejection_id));
  const kept = (await mapInTurns(there, (one) => withoutErased(one, wanted) ?? [])).flat();
  const leaving = there.filter((one) => !kept.some(({ rejection_id }) => rejection_id === one.rejection_id));
  const rejected = new Map<string, number>();
  for (const { kind_id } of leaving) countChange(rejected, kind_id, -1);
  if (leaving.length > 0) await deleteLocked(client, organisationId, idsOf(leaving));
  for (const { rejection_id, record } of kept) {
    const text = 'update rejections set record = $3 where organisation_id = $1 and rejection_id = $2';
    await queryRows(client, { text, values: [organisationId, rejection_id, record] }, 1);
  }
  await countErased(client, organisationId, 'rejections', there.flatMap(erasureOf));
  // A merge may have put the text of a rejection that has gone into a new one, which is then on this page or a later one.
  const isWhole = there.length === found.length;
  const following =
    next === null
      ? { step: 'receipts' as const }
      : { step: 'rejections' as const, position: { after: next } };
  return {
    next: isWhole ? following : { step: 'rejections', position: at },
    done: [{ organisationId, stored: null, rejected, receipt: null }],
  };
}

export async function sweepAnswers(client: Client, place: Place): Promise<Swept> {
  const { organisationId, position } = place;
  const { texts, next } = await readAnswerTexts(client, organisationId, position as string | null);
  const { wanted, found, erasureOf } = await textsOfErased(client, place, texts);
  for (const { request_id, batch, answer } of found) {
    const text = `update receipt_batches set answer = $4 where organisation_id = $1 and request_id = $2 and batch = $3`;
    const values = [organisationId, request_id, batch, answerWithout(wanted, answer)];
    await queryRows(client, { text, values }, 1);
  }
  await countErased(client, organisationId, 'receipts', found.flatMap(erasureOf));
  return { next: next === null ? { step: 'keys' } : { step: 'receipts', position: next } };
}

/** Keys are replaced by their hashes, so that retries still find them. */
export async function sweepKeys(client: Client, place: Place): Promise<Swept> {
  const { organisationId } = place;
  const at = (place.position ?? { table: 0, after: null }) as { table: number; after: string | null };
  const table = keyTables[at.table] as KeyTable;
  const { texts, next } = await readKeys(client, table, organisationId, at.after);
  const { found, erasureOf } = await textsOfErased(client, place, texts);
  if (found.length > 0)
    await replaceKeys(
      client,
      organisationId,
      table,
      found.map(({ key }) => key),
    );
  const name = table === 'receipts' ? 'receipt_keys' : table;
  await countErased(client, organisationId, name, found.flatMap(erasureOf));
  if (next !== null) return { next: { step: 'keys', position: { table: at.table, after: next } } };
  const isLast = at.table === keyTables.length - 1;
  return {
    next: isLast
      ? { step: 'access requests' }
      : { step: 'keys', position: { table: at.table + 1, after: null } },
  };
}

/**
 * Ids are overwritten instead of removed, because a cursor contains a position in an entry's list of ids. Only entries
 * about customers contain people's ids. Those about the later deletion of customers stay until their day is dropped.
 */
export async function sweepLog(client: Client, place: Place): Promise<Swept> {
  const { organisationId, position } = place;
  const isWanted = `exists (select from ${wantedIds(searchOf(place))} and i.id = c.id::text offset 0)`;
  const { rows } = await client.query<{ change_id: string; has_people: boolean }>(
    `select change_id, exists (select from unnest(ids) as c(id) where ${isWanted}) as has_people from changes
     where organisation_id = $1 and type = 'customers' and change_id > $2
     order by change_id limit ${limits.erasureChangesPerStep}`,
    [organisationId, position ?? firstUuid],
  );
  const found = rows.filter(({ has_people }) => has_people).map(({ change_id }) => change_id);
  if (found.length > 0) {
    const statement = {
      text: `
        update changes set ids = (
          select array_agg(case when ${isWanted} then '${firstUuid}'::uuid else c.id end order by c.at)
          from unnest(ids) with ordinality as c(id, at))
        where organisation_id = $1 and change_id = any ($2::uuid[])
          and change_id >= '${found[0]}' and change_id <= '${found.at(-1)}'`,
      values: [organisationId, found],
    };
    await queryRows(client, statement, found.length);
  }
  const last = rows.length === limits.erasureChangesPerStep ? rows.at(-1) : undefined;
  return { next: last ? { step: 'changes', position: last.change_id } : { step: 'customers' } };
}
