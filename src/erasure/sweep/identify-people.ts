import type { Next, Place } from '../../jobs/job.ts';
import { limits } from '../../limits.ts';
import type { Searched } from '../../people/people.ts';
import { type PersonalTable, personalTables, tableWith } from '../../people/personal-tables.ts';
import {
  keyTables,
  type Page,
  readAnswerTexts,
  readCopies,
  readKeys,
  readRejectionTexts,
} from '../../people/read-texts.ts';
import { type Client, type Pool, withClient } from '../../postgres/pool.ts';
import { inTransaction } from '../../postgres/transactions.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import { inOneSpelling } from '../../suppression/ids-in-text.ts';
import { asBytea, type Suppressions } from '../../suppression/suppressions.ts';
import type { IdOfErasure } from '../add-ids.ts';
import type { SweepStep } from './sweep-step.ts';

type Source = (db: Searched, organisationId: string, after: string | null) => Promise<Ids>;

interface Ids {
  readonly ids: readonly string[];
  readonly next: string | null;
}

/** Customers come first, because keys work again as soon as restored customers are hidden. */
const sources: readonly Source[] = [
  idsInTable(tableWith('customers')),
  ...personalTables.filter(({ type }) => type !== 'customers').map(idsInTable),
  idsInTexts(readRejectionTexts),
  idsInTexts(readAnswerTexts),
  ...keyTables.map((table) =>
    idsInTexts((db, organisationId, after) => readKeys(db, table, organisationId, after)),
  ),
  idsAskedFor,
  idsInCollected,
];

/**
 * Finds people whose data came back with a restored backup. Only the hashes of their ids are known, so all stored ids
 * are compared with them, in one spelling, because user ids may not be rewritten yet. Ids that match are hidden as if
 * their erasure had just been requested.
 */
export async function identifyPeople(
  pool: Pool,
  place: Place,
  suppressions: Suppressions,
): Promise<Next<SweepStep>> {
  const { organisationId } = place;
  // The restored database may give the version of the cached suppressions to other people.
  if (place.position === null) suppressions.forgetOrganisation(organisationId);
  const at = (place.position ?? { source: 0, after: null }) as { source: number; after: string | null };
  const { ids: stored, next } = await (sources[at.source] as Source)(pool, organisationId, at.after);
  const ids = [...new Set(stored.map(inOneSpelling))];
  const found = await withClient(pool, (client) => sweptAmong(client, organisationId, ids, suppressions));
  if (found.length > 0)
    await inTransaction(pool, async (client) => {
      await place.lock(client);
      await client.query(
        `insert into erasure_ids (organisation_id, erasure_id, id)
         select r.organisation_id, r.erasure_id, i.id
         from erasures r join unnest($2::uuid[], $3::text[]) as i(erasure_id, id) on i.erasure_id = r.erasure_id
         where r.organisation_id = $1 and r.state = 'sweeping' on conflict do nothing`,
        [organisationId, found.map(({ erasureId }) => erasureId), found.map(({ id }) => id)],
      );
    });
  if (next !== null) return { step: 'identify', position: { source: at.source, after: next } };
  if (at.source === 0) await noteHidden(pool, place);
  if (at.source + 1 < sources.length)
    return { step: 'identify', position: { source: at.source + 1, after: null } };
  // From here on, these erasures are swept like others. First, the user ids that were stored before must be rewritten to one
  // spelling.
  await inTransaction(pool, async (client) => {
    await place.lock(client);
    await client.query(
      `update erasures set state = 'requested', step = 'fence' where organisation_id = $1 and state = 'sweeping' and step like 'identify%'`,
      [organisationId],
    );
  });
  return { step: 'start' };
}

/** Only with the erasures that are being swept, because the same people may have been erased many times before. */
async function sweptAmong(
  client: Client,
  organisationId: string,
  ids: readonly string[],
  suppressions: Suppressions,
): Promise<IdOfErasure[]> {
  const check = await suppressions.checkNow(client, organisationId);
  const byHash = await check.hashesOf(ids);
  if (byHash.size === 0) return [];
  const { rows } = await client.query<{ hash: Buffer; erasure_id: string }>(
    `select s.hash, s.erasure_id from erasures r
     join suppressions s on s.organisation_id = r.organisation_id and s.erasure_id = r.erasure_id
     where r.organisation_id = $1 and s.organisation_id = $1 and r.state = 'sweeping'
       and s.hash = any ($2::bytea[]) and s.lifted_at is null`,
    [organisationId, [...byHash.keys()].map(asBytea)],
  );
  return rows.flatMap(({ hash, erasure_id: erasureId }) =>
    (byHash.get(hash.toString('hex')) ?? []).map((id) => ({ id, erasureId })),
  );
}

/** An erasure that a second restore has added meanwhile is not in this sweep, so its customers are not hidden yet. */
async function noteHidden(pool: Pool, place: Place): Promise<void> {
  await inTransaction(pool, async (client) => {
    await place.lock(client);
    await client.query(
      `update erasures set step = 'identify'
       where organisation_id = $1 and state = 'sweeping' and step = 'identify customers'`,
      [place.organisationId],
    );
  });
  await pool.query('select people_are_hidden()');
}

function idsInTable({ name, id, identifying }: PersonalTable): Source {
  const columns = identifying.map((column) => `${column}::text`).join(', ');
  return async (db, organisationId, after) => {
    const { rows } = await db.query<{ id: string; people: (string | null)[] }>(
      `select ${id} as id, array[${columns}] as people from ${name}
       where organisation_id = $1 and ${id} > $2 order by ${id} limit ${limits.erasureRowsPerScan}`,
      [organisationId, after ?? firstUuid],
    );
    return {
      ids: [...new Set(rows.flatMap(({ people }) => people.filter((one) => one !== null)))],
      next: rows.length === limits.erasureRowsPerScan ? (rows.at(-1)?.id ?? null) : null,
    };
  };
}

function idsInTexts(
  read: (db: Searched, organisationId: string, after: string | null) => Promise<Page<unknown>>,
): Source {
  return async (db, organisationId, after) => {
    const { texts, next } = await read(db, organisationId, after);
    return { ids: [...new Set(texts.flatMap(({ ids }) => ids))], next };
  };
}

async function idsAskedFor(db: Searched, organisationId: string, after: string | null): Promise<Ids> {
  const { rows } = await db.query<{ id: string }>(
    `select distinct id from access_request_ids where organisation_id = $1 and id > $2
     order by id limit ${limits.erasureRowsPerScan}`,
    [organisationId, after ?? ''],
  );
  const last = rows.length === limits.erasureRowsPerScan ? rows.at(-1) : undefined;
  return { ids: rows.map(({ id }) => id), next: last?.id ?? null };
}

async function idsInCollected(db: Searched, organisationId: string, after: string | null): Promise<Ids> {
  const { copies, next } = await readCopies(db, organisationId, after === null ? null : JSON.parse(after));
  return {
    ids: [...new Set(copies.flatMap(({ people }) => people))],
    next: next === null ? null : JSON.stringify(next),
  };
}
