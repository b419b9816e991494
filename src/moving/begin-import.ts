// moving/: exports an organisation from one service to files, and imports the files into another service.

import { version } from '../config.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { audit, lastEntry, type Operator } from '../operator/audit-log.ts';
import { findOrganisation, insertOrganisation } from '../operator/organisations.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { databaseTime, inTransaction, queryRow } from '../postgres/transactions.ts';
import { tableOf } from '../records/tables.ts';
import { resourceTypes } from '../registry/resources.ts';
import { uuidFloor } from '../registry/uuid-v7.ts';
import type { MovePools } from './export-organisation.ts';
import { type Manifest, MoveRefused } from './manifest.ts';

/** All receipt ids of the import contain the millisecond in which it started. */
export interface BegunImport {
  readonly organisationId: string;
  readonly beganMs: number;
  readonly isContinued: boolean;
}

/** The key id in an import's receipts. No real key has this id. */
export const importKeyId = 'import';

/**
 * Creates the organisation or uses an empty one, and records the import in the audit log. If the organisation's last audit
 * entry is about the same export, continues that import. Returns undefined if that import is already finished.
 */
export async function beginImport(
  { serving, admin }: MovePools,
  by: Operator,
  { slug, manifest, sha256 }: { slug: string; manifest: Manifest; sha256: string },
): Promise<BegunImport | undefined> {
  const found = await findOrganisation(admin, slug);
  const isFilled = found !== undefined && (await hasData(serving, found.organisation_id));
  return inTransaction(admin, async (client) => {
    const known = await findOrganisation(client, slug, 'for update');
    if (known && known.deleted_at !== null) throw new RequestError('organisation_is_deleted');
    const organisationId = known?.organisation_id ?? (await createOrganisation(client, by, slug, manifest));
    const last = await lastEntry(client, organisationId, ['organisation.import', 'organisation.imported']);
    const isSame = last?.details.manifest_sha256 === sha256;
    if (isSame && last.act === 'organisation.imported') return undefined;
    const lastMs = last ? Date.parse(last.at) : 0;
    // A recent import may still be running although it has not stored anything yet.
    const isRecent = lastMs > (await databaseTime(client)).getTime() - limits.idempotencyKeyLifeMs;
    if (isSame && (isRecent || isFilled)) {
      // Without the receipts, it is unknown which interactions are stored.
      if (isFilled && !(await hasReceipts(serving, organisationId, lastMs)))
        throw new MoveRefused(
          `the import into "${slug}" was begun so long ago that its receipts are gone; import under another slug`,
        );
      return { organisationId, beganMs: lastMs, isContinued: true };
    }
    if (isFilled)
      throw new MoveRefused(
        `the organisation "${slug}" already has data; import into an organisation that is new or empty`,
      );
    if (isRecent && last?.act === 'organisation.import')
      throw new MoveRefused(
        `the import of another export into "${slug}" was begun at ${last.at}; continue that one, or import under another slug`,
      );
    const details = { from: manifest.organisation.slug, manifest_sha256: sha256, version: version() };
    await audit(client, by, 'organisation.import', details, { organisationId });
    const noted = await lastEntry(client, organisationId, ['organisation.import']);
    if (!noted) throw new Error('the entry of an import was not written');
    return { organisationId, beganMs: Date.parse(noted.at), isContinued: false };
  });
}

async function createOrganisation(
  client: Client,
  by: Operator,
  slug: string,
  { organisation }: Manifest,
): Promise<string> {
  const { name } = organisation;
  const created = await insertOrganisation(client, slug, name);
  if (!created)
    throw new MoveRefused(`the organisation "${slug}" has just been created; run the command again`);
  const organisationId = created.organisation_id;
  await audit(client, by, 'organisation.create', { slug, name }, { organisationId });
  return organisationId;
}

async function hasData(pool: Pool, organisationId: string): Promise<boolean> {
  const tables = [...resourceTypes.map(tableOf), { name: 'interactions', id: 'interaction_id' }];
  for (const { name, id } of tables) {
    const { found } = await queryRow<{ found: number }>(pool, {
      // With `exists`, PostgreSQL may read all organisations' rows to find out that this organisation has no rows.
      text: `
        select count(*)::integer as found
        from (select from ${name} where organisation_id = $1 order by ${id} limit 1) as first`,
      values: [organisationId],
    });
    if (found > 0) return true;
  }
  return false;
}

interface Imported {
  readonly requests: number;
  readonly failed: number;
}

/** All receipts of an import are in one partition, so they are dropped together. */
export async function importedSoFar(
  pool: Pool,
  { organisationId, beganMs }: Pick<BegunImport, 'organisationId' | 'beganMs'>,
): Promise<Imported> {
  return queryRow(pool, {
    text: `select count(*)::integer as requests, coalesce(sum(failed), 0)::integer as failed from receipts
           where organisation_id = $1 and request_id >= $2 and request_id < $3 and key_id = $4`,
    values: [organisationId, uuidFloor(beganMs), uuidFloor(beganMs + 1), importKeyId],
  });
}

async function hasReceipts(pool: Pool, organisationId: string, beganMs: number): Promise<boolean> {
  return (await importedSoFar(pool, { organisationId, beganMs })).requests > 0;
}

/** After this, running the import again does nothing. */
export async function noteImported(
  admin: Pool,
  by: Operator,
  organisationId: string,
  { manifest, sha256, failed }: { manifest: Manifest; sha256: string; failed: number },
): Promise<void> {
  const details = { manifest_sha256: sha256, counts: manifest.counts, failed };
  await inTransaction(admin, (client) =>
    audit(client, by, 'organisation.imported', details, { organisationId }),
  );
}
