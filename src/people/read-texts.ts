import { mapInTurns } from '../json/map-in-turns.ts';
import { limits } from '../limits.ts';
import { withinBytes } from '../records/within-bytes.ts';
import { peopleOf } from '../registry/personal.ts';
import { personalFields } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { idsInKey, type KeyTable } from '../suppression/idempotency-keys.ts';
import { type FailedRecord, idsInFailed, inOneSpelling, uuidsIn } from '../suppression/ids-in-text.ts';
import type { Searched } from './people.ts';
import { personalTables } from './personal-tables.ts';

/** Each text with all strings in it that may be a person's id. */
export interface Page<T> {
  readonly texts: readonly (T & { readonly ids: readonly string[] })[];
  /** Null after the last page. */
  readonly next: string | null;
}

interface Counted {
  readonly rows_in_all: number;
}

const bytesMax = limits.recordCharactersPerRead;

/** The row after which the next step continues, if there are more rows. */
function endOf<T extends Counted>(rows: readonly T[], rowsMax: number): T | undefined {
  const last = rows.at(-1);
  return last && (rows.length < last.rows_in_all || last.rows_in_all === rowsMax) ? last : undefined;
}

interface RejectionText extends FailedRecord {
  readonly rejection_id: string;
  readonly kind_id: string;
}

export async function readRejectionTexts(
  db: Searched,
  organisationId: string,
  after: string | null,
): Promise<Page<RejectionText>> {
  const all = `
    select rejection_id, type, kind_id, record_id, record from rejections
    where organisation_id = $1 and rejection_id > $2 and type = any ($3::text[])
    order by rejection_id limit ${limits.erasureTextsPerStep}`;
  const { rows } = await db.query<RejectionText & Counted>(
    `select * from ${withinBytes({ rows: all, order: 'rejection_id', bytesMax })} as r order by rejection_id`,
    [organisationId, after ?? firstUuid, personalTables.map(({ type }) => type)],
  );
  return {
    texts: await mapInTurns(rows, (row) => ({ ...row, ids: idsInFailed(row) })),
    next: endOf(rows, limits.erasureTextsPerStep)?.rejection_id ?? null,
  };
}

interface AnswerText {
  readonly request_id: string;
  readonly batch: number;
  readonly answer: string;
}

/** Only responses that can contain the ids of failed customer records. */
export async function readAnswerTexts(
  db: Searched,
  organisationId: string,
  after: string | null,
): Promise<Page<AnswerText>> {
  const [requestId = firstUuid, batch = '0'] = after?.split(' ') ?? [];
  const all = `
    select b.request_id, b.batch, b.answer
    from receipt_batches b join receipts r on r.organisation_id = b.organisation_id and r.request_id = b.request_id
    where b.organisation_id = $1 and r.organisation_id = $1 and (r.type = 'customers' or r.type is null)
      and (b.request_id, b.batch) > ($2, $3)
    order by b.request_id, b.batch limit ${limits.erasureAnswersPerStep}`;
  const order = 'request_id, batch';
  const { rows } = await db.query<AnswerText & Counted>(
    `select * from ${withinBytes({ rows: all, order, text: 'answer', bytesMax })} as b order by ${order}`,
    [organisationId, requestId, batch],
  );
  const end = endOf(rows, limits.erasureAnswersPerStep);
  return {
    texts: await mapInTurns(rows, (row) => ({ ...row, ids: uuidsIn(row.answer) })),
    next: end ? `${end.request_id} ${end.batch}` : null,
  };
}

export const keyTables: readonly KeyTable[] = [
  'receipts',
  'upload_idempotency_keys',
  'interaction_idempotency_keys',
];

export async function readKeys(
  db: Searched,
  table: KeyTable,
  organisationId: string,
  after: string | null,
): Promise<Page<{ readonly key: string }>> {
  const { rows } = await db.query<{ key: string }>(
    `select distinct idempotency_key as key from ${table}
     where organisation_id = $1 and idempotency_key > $2 order by 1 limit ${limits.erasureTextsPerStep}`,
    [organisationId, after ?? ''],
  );
  const end = rows.length === limits.erasureTextsPerStep ? rows.at(-1) : undefined;
  return { texts: rows.map(({ key }) => ({ key, ids: idsInKey(key) })), next: end?.key ?? null };
}

/** A copy of a record that was collected for an access request. */
export interface CollectedCopy {
  readonly access_request_id: string;
  readonly type: string;
  readonly id: string;
  readonly people: readonly string[];
  readonly record: string;
}

export type CopyPlace = readonly [request: string, type: string, id: string];

export async function readCopies(
  db: Searched,
  organisationId: string,
  after: CopyPlace | null,
): Promise<{ readonly copies: readonly CollectedCopy[]; readonly next: CopyPlace | null }> {
  const order = 'access_request_id, type, id';
  const all = `
    select access_request_id, type, id, people, record from access_request_records
    where organisation_id = $1 and (access_request_id, type, id) > ($2, $3, $4)
    order by ${order} limit ${limits.erasureTextsPerStep}`;
  const { rows } = await db.query<CollectedCopy & Counted>(
    `select * from ${withinBytes({ rows: all, order, bytesMax })} as r order by ${order}`,
    [organisationId, ...(after ?? [firstUuid, '', ''])],
  );
  const end = endOf(rows, limits.erasureTextsPerStep);
  // Earlier releases stored and collected user ids as they were sent.
  const copies = rows.map((row) => ({ ...row, people: row.people.map(inOneSpelling) }));
  return { copies, next: end ? [end.access_request_id, end.type, end.id] : null };
}

/** Returns undefined unless it is an interaction of somebody else. */
export function withoutMentioned<T extends Pick<CollectedCopy, 'people' | 'record'>>(
  type: string,
  copy: T,
  wanted: { has(id: string): boolean },
): T | undefined {
  if (type !== 'interactions') return undefined;
  const fields = personalFields('interactions');
  const isWanted = (id: string) => wanted.has(id) || wanted.has(inOneSpelling(id));
  const record = JSON.parse(copy.record) as Record<string, string | null>;
  if (peopleOf(fields, (field) => record[field]).some(isWanted)) return undefined;
  for (const field of fields.alone) if (isWanted(record[field] ?? '')) record[field] = null;
  const people = copy.people.filter((id) => !isWanted(id));
  return { ...copy, people, record: JSON.stringify(record) };
}
