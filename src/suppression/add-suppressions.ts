// suppression/: keeps erased people from being stored again. Only hashes of their ids are kept.

import type { Client } from '../postgres/pool.ts';
import type { IdHashes } from './suppression-key.ts';

interface NewSuppression extends IdHashes {
  readonly erasureId: string;
  /** Set if it had been lifted before the database was restored. */
  readonly liftedBefore?: string | null;
}

/** Suppresses the hashes from this version on, and notes the keys that they were made with. */
export async function addSuppressions(
  client: Client,
  { organisationId, version }: { readonly organisationId: string; readonly version: number },
  added: readonly NewSuppression[],
): Promise<void> {
  const fingerprints = new Map(
    added.flatMap(({ fingerprint }) => (fingerprint ? [[fingerprint.toString('hex'), fingerprint]] : [])),
  );
  await client.query({
    name: 'add keys of suppressions',
    text: `
      insert into erasure_keys (organisation_id, fingerprint)
      select o.organisation_id, i.fingerprint from tenants o cross join unnest($2::bytea[]) as i(fingerprint)
      where o.organisation_id = $1 on conflict do nothing`,
    values: [organisationId, [...fingerprints.values()]],
  });
  await client.query({
    name: 'add suppressions',
    text: `
      insert into suppressions
        (organisation_id, hash, filter, erasure_id, version, key_fingerprint, lifted_before)
      select o.organisation_id, i.hash, i.filter, i.erasure_id, $2::integer, i.fingerprint, i.lifted_before
      from tenants o cross join unnest($3::bytea[], $4::bigint[], $5::uuid[], $6::bytea[], $7::timestamptz[])
        as i(hash, filter, erasure_id, fingerprint, lifted_before)
      where o.organisation_id = $1 order by i.hash on conflict do nothing`,
    values: [
      organisationId,
      version,
      added.map(({ hash }) => hash),
      added.map(({ filter }) => filter.toString()),
      added.map(({ erasureId }) => erasureId),
      added.map(({ fingerprint }) => fingerprint),
      added.map(({ liftedBefore }) => liftedBefore ?? null),
    ],
  });
}
