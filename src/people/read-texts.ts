import { limits } from '../limits.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { idsInKey, type KeyTable } from '../suppression/idempotency-keys.ts';
import { type FailedRecord, idsInFailed, uuidsIn } from '../suppression/ids-in-text.ts';
import type { Searched } from './people.ts';
import { personalTables } from './personal-tables.ts';

/** Each text with all strings in it that may be a person's id. */
export interface Page<T> {
  readonly texts: readonly (T & { readonly ids: readonly string[] })[];
  /** Null after the last page. */
  readonly next: string | null;
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
  const { rows } = await db.query<RejectionText>(
    `select rejection_id, type, kind_id, record_id, record from rejections
     where organisation_id = $1 and rejection_id > $2 and type = any ($3::text[])
     order by rejection_id limit ${limits.erasureTextsPerStep}`,
    [organisationId, after ?? firstUuid, personalTables.map(({ type }) => type)],
  );
  const end = rows.length === limits.erasureTextsPerStep ? rows.at(-1) : undefined;
  return { texts: rows.map((row) => ({ ...row, ids: idsInFailed(row) })), next: end?.rejection_id ?? null };
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
  const { rows } = await db.query<AnswerText>(
    `select b.request_id, b.batch, b.answer
     from receipt_batches b join receipts r on r.organisation_id = b.organisation_id and r.request_id = b.request_id
     where b.organisation_id = $1 and r.organisation_id = $1 and (r.type = 'customers' or r.type is null)
       and (b.request_id, b.batch) > ($2, $3)
     order by b.request_id, b.batch limit ${limits.erasureAnswersPerStep}`,
    [organisationId, requestId, batch],
  );
  const end = rows.length === limits.erasureAnswersPerStep ? rows.at(-1) : undefined;
  return {
    texts: rows.map((row) => ({ ...row, ids: uuidsIn(row.answer) })),
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
