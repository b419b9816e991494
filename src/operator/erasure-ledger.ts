import { limits } from '../limits.ts';
import { exactTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { addSuppressions } from '../suppression/add-suppressions.ts';
import { liftAgain } from '../suppression/lift-suppressions.ts';
import { inGroups, type Saved } from './batches.ts';

/** Contains only the data that a restored database needs, and nothing that identifies a person. */
export interface LedgerEntry {
  readonly organisation_id: string;
  readonly erasure_id: string;
  readonly mode: string;
  readonly key_id: string;
  readonly people: number;
  readonly known: number;
  /** In hexadecimal. */
  readonly hash: string;
  readonly filter: string;
  /** The fingerprint of the hash's key in hexadecimal. Ledgers of older versions lack it and the next field. */
  readonly key_fingerprint?: string | null;
  readonly lifted_at?: string | null;
}

/** The last line of a ledger. A ledger without it was cut off. */
export interface LedgerEnd {
  readonly entries: number;
  readonly written_at: string;
}

/** `writtenAt` is a time of the database from before the first read. */
export async function* ledgerLines(pool: Pool, writtenAt: Date): AsyncGenerator<string> {
  let count = 0;
  for await (const entries of readLedger(pool)) {
    count += entries.length;
    yield entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  }
  const end: LedgerEnd = { entries: count, written_at: writtenAt.toISOString() };
  yield `${JSON.stringify(end)}\n`;
}

export async function* readLedger(pool: Pool): AsyncGenerator<LedgerEntry[]> {
  const { rows: organisations } = await pool.query<{ organisation_id: string }>(
    'select organisation_id from organisations order by organisation_id',
  );
  for (const { organisation_id } of organisations) yield* readOrganisation(pool, organisation_id);
}

/** All pages are of one snapshot. Otherwise, the ledger could contain half of an erasure that commits between two pages. */
async function* readOrganisation(pool: Pool, organisationId: string): AsyncGenerator<LedgerEntry[]> {
  const client = await pool.connect();
  let hasEnded = false;
  try {
    await client.query('begin isolation level repeatable read, read only');
    for (let after = ['\\x', firstUuid]; !hasEnded; ) {
      const { rows } = await client.query<LedgerEntry>(
        `select e.organisation_id, e.erasure_id, e.mode, e.key_id, e.people, e.known, encode(s.hash, 'hex') as hash,
           s.filter::text as filter, encode(s.key_fingerprint, 'hex') as key_fingerprint,
           ${exactTime('coalesce(s.lifted_at, s.lifted_before)')} as lifted_at
         from suppressions s join erasures e on e.organisation_id = s.organisation_id and e.erasure_id = s.erasure_id
         where s.organisation_id = $1 and e.organisation_id = $1 and (s.hash, s.erasure_id) > ($2, $3)
         order by s.hash, s.erasure_id limit ${limits.ledgerEntriesPerRead}`,
        [organisationId, ...after],
      );
      const last = rows.at(-1);
      if (last && rows.length === limits.ledgerEntriesPerRead) after = [`\\x${last.hash}`, last.erasure_id];
      else {
        // Before the last page is returned, because its reader may be slow.
        await client.query('commit');
        hasEnded = true;
      }
      if (last) yield rows;
    }
  } finally {
    // Closing the connection ends the transaction.
    client.release(!hasEnded);
  }
}

/** An organisation with erasures that a ledger lacks. */
export interface Lacking {
  readonly organisation_id: string;
  readonly slug: string;
  /** Whether the ledger has other erasures of the organisation. */
  readonly isPartial: boolean;
}

const organisationOf = ({ organisation_id }: LedgerEntry) => organisation_id;

export async function compareLedger(pool: Pool, entries: Saved<LedgerEntry>): Promise<Lacking[]> {
  const lacksErasure = async (organisationId: string, erasureIds: ReadonlySet<string>) => {
    const { rowCount } = await pool.query(
      `select from erasures e where organisation_id = $1 and erasure_id <> all ($2::uuid[])
         and exists (select from suppressions s where s.organisation_id = $1 and s.erasure_id = e.erasure_id)
       limit 1`,
      [organisationId, [...erasureIds]],
    );
    return rowCount === 1;
  };
  const isPartial = new Map<string, boolean>();
  for await (const [organisationId, batches] of inGroups(
    entries,
    limits.ledgerEntriesPerRead,
    organisationOf,
  )) {
    const erasureIds = new Set<string>();
    for await (const batch of batches) for (const { erasure_id } of batch) erasureIds.add(erasure_id);
    isPartial.set(organisationId, await lacksErasure(organisationId, erasureIds));
  }
  const { rows } = await pool.query<Omit<Lacking, 'isPartial'>>(
    'select organisation_id, slug from organisations order by slug',
  );
  const found: Lacking[] = [];
  for (const row of rows) {
    const known = isPartial.get(row.organisation_id);
    if (known ?? (await lacksErasure(row.organisation_id, new Set())))
      found.push({ ...row, isPartial: known !== undefined });
  }
  return found;
}

/** Must run before the restore is confirmed. Erasures that had been lifted are lifted again once they are swept. */
export async function repeatErasures(pool: Pool, entries: Saved<LedgerEntry>): Promise<number> {
  let repeated = 0;
  for await (const [organisationId, batches] of inGroups(
    entries,
    limits.ledgerEntriesPerRead,
    organisationOf,
  ))
    repeated += await inTransaction(pool, (client) => repeatFor(client, organisationId, batches));
  return repeated;
}

async function repeatFor(
  client: Client,
  organisationId: string,
  batches: AsyncIterable<readonly LedgerEntry[]>,
): Promise<number> {
  const { rows: versions } = await client.query<{ version: number }>(
    `update tenants set suppressions_version = suppressions_version + 1 where organisation_id = $1
     returning suppressions_version as version`,
    [organisationId],
  );
  // The organisation was created after the restore point, and so were its people's records.
  if (!versions[0]) return 0;
  const { version } = versions[0];
  // Whether the restored database lacked the erasure. Its entries may be in several batches.
  const isNew = new Map<string, boolean>();
  const lifted = new Map<string, LedgerEntry>();
  for await (const entries of batches) {
    const erasures = new Map(entries.map((entry) => [entry.erasure_id, entry]));
    const unseen = [...erasures.values()].filter(({ erasure_id }) => !isNew.has(erasure_id));
    const added = await addErasures(client, organisationId, unseen);
    for (const { erasure_id } of unseen) isNew.set(erasure_id, added.has(erasure_id));
    await addHashes(
      client,
      { organisationId, version },
      entries.filter(({ erasure_id }) => isNew.get(erasure_id)),
    );
    for (const [erasureId, entry] of erasures)
      if (entry.lifted_at && !isNew.get(erasureId)) lifted.set(erasureId, entry);
  }
  await liftFor(client, organisationId, [...lifted.values()]);
  return [...isNew.values()].filter(Boolean).length;
}

/** Returns the ids of those that the database lacked. */
async function addErasures(
  client: Client,
  organisationId: string,
  erasures: readonly LedgerEntry[],
): Promise<ReadonlySet<string>> {
  if (erasures.length === 0) return new Set();
  const { rows } = await client.query<{ erasure_id: string }>(
    `insert into erasures (organisation_id, erasure_id, mode, key_id, people, known, step)
     select o.organisation_id, i.*, 'identify customers' from tenants o
     cross join unnest($2::uuid[], $3::text[], $4::text[], $5::integer[], $6::integer[]) as i
     where o.organisation_id = $1 on conflict do nothing returning erasure_id`,
    [
      organisationId,
      erasures.map(({ erasure_id }) => erasure_id),
      erasures.map(({ mode }) => mode),
      erasures.map(({ key_id }) => key_id),
      erasures.map(({ people }) => people),
      erasures.map(({ known }) => known),
    ],
  );
  return new Set(rows.map(({ erasure_id }) => erasure_id));
}

async function addHashes(
  client: Client,
  of: { readonly organisationId: string; readonly version: number },
  entries: readonly LedgerEntry[],
): Promise<void> {
  if (entries.length === 0) return;
  await addSuppressions(
    client,
    of,
    entries.map(({ erasure_id, hash, filter, key_fingerprint, lifted_at }) => ({
      erasureId: erasure_id,
      hash: Buffer.from(hash, 'hex'),
      filter: BigInt(filter),
      fingerprint: key_fingerprint ? Buffer.from(key_fingerprint, 'hex') : null,
      liftedBefore: lifted_at ?? null,
    })),
  );
}

/** Lifts erasures that were requested before the restored time and lifted after it. */
async function liftFor(
  client: Client,
  organisationId: string,
  lifted: readonly LedgerEntry[],
): Promise<void> {
  if (lifted.length === 0) return;
  const erasureIds = lifted.map(({ erasure_id }) => erasure_id);
  await client.query(
    `update suppressions s set lifted_before = i.lifted_at
     from unnest($2::uuid[], $3::timestamptz[]) as i(erasure_id, lifted_at)
     where s.organisation_id = $1 and s.erasure_id = i.erasure_id and s.lifted_at is null`,
    [organisationId, erasureIds, lifted.map(({ lifted_at }) => lifted_at)],
  );
  await liftAgain(client, organisationId, erasureIds);
}
