import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';

/**
 * One suppressed id in the ledger. It contains only the data that a restored database needs, and nothing that identifies a
 * person.
 */
export interface LedgerEntry {
  readonly organisation_id: string;
  readonly erasure_id: string;
  readonly mode: string;
  readonly key_id: string;
  readonly people: number;
  readonly known: number;
  /** The hash in hexadecimal. */
  readonly hash: string;
  readonly filter: string;
}

/** Reads all suppressions in chunks, one organisation after another. */
export async function* readLedger(pool: Pool): AsyncGenerator<LedgerEntry[]> {
  const { rows: organisations } = await pool.query<{ organisation_id: string }>(
    'select organisation_id from organisations order by organisation_id',
  );
  for (const { organisation_id } of organisations)
    for (let after = '\\x'; ; ) {
      const { rows } = await pool.query<LedgerEntry>(
        `select e.organisation_id, e.erasure_id, e.mode, e.key_id, e.people, e.known, encode(s.hash, 'hex') as hash,
           s.filter::text as filter
         from suppressions s join erasures e on e.organisation_id = s.organisation_id and e.erasure_id = s.erasure_id
         where s.organisation_id = $1 and e.organisation_id = $1 and s.hash > $2
         order by s.hash limit ${limits.ledgerEntriesPerRead}`,
        [organisation_id, after],
      );
      if (rows.length > 0) yield rows;
      const last = rows.at(-1);
      if (!last || rows.length < limits.ledgerEntriesPerRead) break;
      after = `\\x${last.hash}`;
    }
}

/**
 * Repeats the erasures that the restored database lacks, and returns their number. These people's data still has to be
 * found. Must run before the restore is confirmed.
 */
export async function repeatErasures(pool: Pool, entries: readonly LedgerEntry[]): Promise<number> {
  let repeated = 0;
  for (const [organisationId, ofOne] of Map.groupBy(entries, ({ organisation_id }) => organisation_id))
    repeated += await inTransaction(pool, (client) => repeatFor(client, organisationId, ofOne));
  return repeated;
}

async function repeatFor(
  client: Client,
  organisationId: string,
  entries: readonly LedgerEntry[],
): Promise<number> {
  const { rows: versions } = await client.query<{ version: number }>(
    `update tenants set suppressions_version = suppressions_version + 1 where organisation_id = $1
     returning suppressions_version as version`,
    [organisationId],
  );
  // The organisation was created after the restore point, and so were its people's records.
  if (!versions[0]) return 0;
  const erasures = [...new Map(entries.map((entry) => [entry.erasure_id, entry])).values()];
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
  const isNew = new Set(rows.map(({ erasure_id }) => erasure_id));
  const added = entries.filter(({ erasure_id }) => isNew.has(erasure_id));
  await client.query(
    `insert into suppressions (organisation_id, hash, filter, erasure_id, version)
     select o.organisation_id, i.hash, i.filter, i.erasure_id, $2::integer from tenants o
     cross join unnest($3::bytea[], $4::bigint[], $5::uuid[]) as i(hash, filter, erasure_id)
     where o.organisation_id = $1 on conflict do nothing`,
    [
      organisationId,
      versions[0].version,
      added.map(({ hash }) => `\\x${hash}`),
      added.map(({ filter }) => filter),
      added.map(({ erasure_id }) => erasure_id),
    ],
  );
  return isNew.size;
}
