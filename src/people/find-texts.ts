import { limits } from '../limits.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { idsInText, uuidPattern } from '../suppression/ids-in-text.ts';
import type { Found, People, Searched } from './people.ts';
import { personalTables } from './personal-tables.ts';

/** A text that contains some of these people's ids. */
interface Naming {
  /** The ids in the text that match the search. */
  readonly named: readonly string[];
}

export interface RejectionOfPeople extends Naming {
  readonly rejection_id: string;
  readonly kind_id: string;
}

/**
 * Finds failed records that contain people's ids, whatever the reason for the failure. All batches must be settled first.
 */
export async function nextRejections(
  db: Searched,
  people: People,
  after: string | null,
): Promise<Found<RejectionOfPeople>> {
  const { rows } = await db.query<{
    rejection_id: string;
    type: UploadType;
    kind_id: string;
    record_id: string | null;
    record: string | null;
  }>(
    `select rejection_id, type, kind_id, record_id, record from rejections
     where organisation_id = $1 and rejection_id > $2 and type = any ($3::text[])
     order by rejection_id limit ${limits.erasureTextsPerStep}`,
    [people.organisationId, after ?? firstUuid, personalTables.map(({ type }) => type)],
  );
  const found = rows.flatMap(({ rejection_id, kind_id, ...text }) =>
    naming(people, { rejection_id, kind_id }, idsInRejection(text)),
  );
  const isLast = rows.length < limits.erasureTextsPerStep;
  return { found, after: isLast ? null : (rows.at(-1)?.rejection_id ?? null) };
}

/** Returns all values in a failed record that may be people's ids. */
export function idsInRejection({
  type,
  record_id,
  record,
}: {
  readonly type: UploadType;
  readonly record_id: string | null;
  readonly record: string | null;
}): string[] {
  const inRecord = record === null ? [] : idsInText(type, record);
  return record_id === null ? inRecord : [record_id, ...inRecord];
}

export interface AnswerOfPeople extends Naming {
  readonly request_id: string;
  readonly batch: number;
  readonly answer: string;
}

/** Finds responses stored in receipts that contain the ids of failed customer records. */
export async function nextAnswers(
  db: Searched,
  people: People,
  after: string | null,
): Promise<Found<AnswerOfPeople>> {
  const [requestId = firstUuid, batch = '0'] = after?.split(' ') ?? [];
  const { rows } = await db.query<{ request_id: string; batch: number; answer: string }>(
    `select b.request_id, b.batch, b.answer
     from receipt_batches b join receipts r on r.organisation_id = b.organisation_id and r.request_id = b.request_id
     where b.organisation_id = $1 and r.organisation_id = $1 and (r.type = 'customers' or r.type is null)
       and (b.request_id, b.batch) > ($2, $3)
     order by b.request_id, b.batch limit ${limits.erasureAnswersPerStep}`,
    [people.organisationId, requestId, batch],
  );
  const end = rows.length === limits.erasureAnswersPerStep ? rows.at(-1) : undefined;
  return {
    found: rows.flatMap((row) => naming(people, row, uuidsIn(row.answer))),
    after: end ? `${end.request_id} ${end.batch}` : null,
  };
}

export interface KeyOfPeople extends Naming {
  readonly key: string;
}

/** The tables with Idempotency-Keys. Clients can choose any string as a key, including one that contains an id. */
export type KeyTable = 'receipts' | 'upload_idempotency_keys' | 'interaction_idempotency_keys';

export async function nextKeys(
  db: Searched,
  table: KeyTable,
  people: People,
  after: string | null,
): Promise<Found<KeyOfPeople>> {
  const { rows } = await db.query<{ key: string }>(
    `select distinct idempotency_key as key from ${table}
     where organisation_id = $1 and idempotency_key > $2 order by 1 limit ${limits.erasureRowsPerScan}`,
    [people.organisationId, after ?? ''],
  );
  const isLast = rows.length < limits.erasureRowsPerScan;
  return {
    found: rows.flatMap(({ key }) => naming(people, { key }, idsInKey(key))),
    after: isLast ? null : (rows.at(-1)?.key ?? null),
  };
}

export function idsInKey(key: string): string[] {
  return [key, ...uuidsIn(key)];
}

export function uuidsIn(text: string): string[] {
  return [...text.matchAll(uuidPattern)].map(([id]) => id.toLowerCase());
}

/** Returns a list with the object and its matching ids, or an empty list if no ids match. */
function naming<T>({ ids }: People, one: T, candidates: readonly string[]): (T & Naming)[] {
  const named = candidates.filter((id) => ids.has(id));
  return named.length === 0 ? [] : [{ ...one, named }];
}
