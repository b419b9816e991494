import { ChangeCursors } from '../changes/change-cursor.ts';
import { freshCursor } from '../changes/change-log.ts';
import { version } from '../config.ts';
import { isUnswept } from '../erasure/find-erasures.ts';
import { uuidLiteral } from '../interactions/interaction-rows.ts';
import { SignedCursors } from '../keys/signed-cursors.ts';
import { limits } from '../limits.ts';
import { audit, type Operator } from '../operator/audit-log.ts';
import { findOrganisation } from '../operator/organisations.ts';
import { withoutSorting } from '../postgres/index-order.ts';
import type { Pool } from '../postgres/pool.ts';
import { takeRows } from '../postgres/take-rows.ts';
import { inTransaction, queryRow } from '../postgres/transactions.ts';
import { LineBuffer } from '../records/line-buffer.ts';
import { readLines } from '../records/read-records.ts';
import { quote } from '../records/tables.ts';
import { interaction } from '../registry/interaction.ts';
import { idFieldOf } from '../registry/resources.ts';
import { inOrderOfReference, type UploadType } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { listFileClaims } from '../runs/move-file-claims.ts';
import { ExportJournal } from './export-journal.ts';
import { moveLimits } from './limits.ts';
import { countsOf, format, formatVersion, type Manifest, MoveRefused } from './manifest.ts';
import { PartWriter } from './part-writer.ts';

/** One database login reads and stores records, and the other finds the organisation and writes the audit log. */
export interface MovePools {
  readonly serving: Pool;
  readonly admin: Pool;
}

export type Report = (type: UploadType, rows: number) => void;

/**
 * The export does not use a snapshot. For a billion rows, holding a snapshot would block vacuum on all tables for
 * hours, and the snapshot would be lost if its connection broke. Instead, each type is read before the types it refers
 * to. Only erasures remove records, and an export during which people were erased fails, so the files contain
 * everything that a row refers to. Everything that is stored during the export is in the change feed.
 */
export async function exportOrganisation(
  { serving, admin }: MovePools,
  by: Operator,
  { slug, folder, partRows = moveLimits.partRows }: { slug: string; folder: string; partRows?: number },
  report: Report,
): Promise<Manifest> {
  const organisation = await findOrganisation(admin, slug);
  if (!organisation)
    throw new MoveRefused(`there is no organisation "${slug}"; organisations list shows them`);
  if (organisation.removal) throw beingRemoved;
  const { organisation_id: organisationId, name, created_at } = organisation;
  // This throws on a restored database, which may contain people who had been erased. The message is for the operator.
  await serving.query('select keys_can_be_trusted()');
  await refuseErasing(serving, organisationId);
  const journal = await ExportJournal.open(folder, organisationId, async () => ({
    format_version: formatVersion,
    organisation_id: organisationId,
    created_at: new Date().toISOString(),
    suppressions_version: await suppressionsVersion(serving, organisationId),
    changes_cursor: await freshCursor(
      serving,
      organisationId,
      new ChangeCursors(await new SignedCursors(serving).for(organisationId, 'feed')),
    ),
  }));
  const log = (act: string, details: Record<string, unknown>) =>
    inTransaction(admin, (client) => audit(client, by, act, details, { organisationId }));
  // Write the audit entry before the first row is read, so that no data leaves the database without one.
  await log('organisation.export', journal.isContinued ? { continued: true } : {});
  for (const type of inOrderOfReference().toReversed())
    if (!journal.isDone(type))
      await exportType(serving, organisationId, { type, folder, partRows, journal }, report);
  await refuseErased(serving, organisationId, journal);
  const files = journal.parts;
  const manifest: Manifest = {
    format,
    format_version: formatVersion,
    service_version: version(),
    organisation: { slug, name, created_at },
    created_at: journal.head.created_at,
    changes_cursor: journal.head.changes_cursor,
    counts: countsOf(files),
    files,
    file_claims: await listFileClaims(serving, organisationId),
  };
  await journal.finish(manifest);
  await log('organisation.exported', { counts: manifest.counts });
  return manifest;
}

interface TypeExport {
  readonly type: UploadType;
  readonly folder: string;
  readonly partRows: number;
  readonly journal: ExportJournal;
}

async function exportType(
  pool: Pool,
  organisationId: string,
  { type, folder, partRows, journal }: TypeExport,
  report: Report,
): Promise<void> {
  const idField = type === 'interactions' ? 'interaction_id' : idFieldOf(type);
  let { files, last } = journal.reached(type);
  let rows = journal.parts.filter((part) => part.type === type).reduce((sum, part) => sum + part.rows, 0);
  let part: PartWriter | undefined;
  const finishPart = async (full: PartWriter) => {
    last = full.last(idField);
    await journal.add({ type, part: await full.finish(), last });
    rows += full.rows;
    part = undefined;
  };
  try {
    for await (const lines of linesOf(pool, organisationId, type, last)) {
      if (lines.length === 0) continue;
      part ??= new PartWriter(folder, type, ++files);
      await part.write(lines);
      report(type, rows + part.rows);
      if (part.rows >= partRows || part.lineBytes >= moveLimits.partBytes) await finishPart(part);
    }
    if (part) await finishPart(part);
    await journal.add({ type, part: null, last: null });
    report(type, rows);
  } finally {
    part?.abort();
  }
}

function linesOf(
  pool: Pool,
  organisationId: string,
  type: UploadType,
  after: string | undefined,
): AsyncGenerator<Buffer> {
  if (type === 'interactions') return interactionLines(pool, organisationId, after);
  return readLines(pool, {
    organisationId,
    type,
    includeDeleted: true,
    storedSince: undefined,
    equal: {},
    after,
  });
}

const interactionFields = ['interaction_id', ...Object.keys(interaction)].map(quote).join(', ');

/**
 * Oldest first, so that the import stores interactions in the order in which they were received. One partition at a
 * time, because otherwise the planner would have to consider every day's partition for each query.
 */
async function* interactionLines(
  pool: Pool,
  organisationId: string,
  after: string = firstUuid,
): AsyncGenerator<Buffer> {
  const { rows: days } = await pool.query<{ end_id: string }>(
    'select end_id from interaction_partitions where end_id > $1 order by first_id',
    [after],
  );
  const lines = new LineBuffer();
  let last = after;
  for (const { end_id } of days)
    for (let count: number = limits.recordsPerRead; count === limits.recordsPerRead; ) {
      const text = `
        select r.interaction_id, row_to_json(r)::text as interaction from (
          select ${interactionFields} from interactions
          where organisation_id = $1 and interaction_id > ${uuidLiteral(last)} and interaction_id < ${uuidLiteral(end_id)}
          order by interaction_id limit ${limits.recordsPerRead}) r
        order by r.interaction_id`;
      const take = (id: string, line: string) => {
        last = id;
        lines.add(line);
      };
      const query = { text, values: [organisationId] };
      count = await withoutSorting(pool, (client) => takeRows(client, query, take));
      yield lines.take();
    }
}

async function refuseErasing(pool: Pool, organisationId: string): Promise<void> {
  const { count } = await queryRow<{ count: number }>(pool, {
    text: `select count(*)::integer as count from erasures where organisation_id = $1 and ${isUnswept}`,
    values: [organisationId],
  });
  if (count > 0)
    throw new MoveRefused('people are being erased from this organisation; export it when that is done');
}

/** Files that were already written may contain people who were erased during the export. */
async function refuseErased(pool: Pool, organisationId: string, { head }: ExportJournal): Promise<void> {
  if ((await suppressionsVersion(pool, organisationId)) !== head.suppressions_version)
    throw new MoveRefused(
      'people were erased while the export ran, and may be in its files; delete the folder and export again',
    );
}

async function suppressionsVersion(pool: Pool, organisationId: string): Promise<number> {
  const { rows } = await pool.query<{ version: number }>(
    'select suppressions_version as version from tenants where organisation_id = $1',
    [organisationId],
  );
  const [tenant] = rows;
  if (!tenant) throw beingRemoved;
  return tenant.version;
}

const beingRemoved = new MoveRefused('the organisation is being removed, and part of it is gone');
