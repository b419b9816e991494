import { limits } from '../../limits.ts';
import { queryRow, queryRows } from '../../postgres/transactions.ts';
import { isUuid } from '../../registry/fields.ts';
import type { UploadType } from '../../registry/upload-types.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import { countChange } from '../../rejections/rejection-kinds.ts';
import { deleteLocked, lockRejections } from '../../rejections/rejections.ts';
import { settleOrganisation } from '../../rejections/unsettled-batches.ts';
import { answerWithout } from '../../suppression/hidden-ids.ts';
import { idsInText, uuidPattern } from '../../suppression/ids-in-text.ts';
import { personalTables } from '../erasure-functions.ts';
import type { Step, Sweep } from './sweep-step.ts';

/** The erasure of the first of these ids that belongs to a person, if any does. */
function erasureOf({ ids }: Sweep, candidates: readonly string[]): string | undefined {
  const found = candidates.find((id) => ids.has(id));
  return found === undefined ? undefined : ids.get(found);
}

/** Failed records of people are deleted, whatever is wrong with them. */
const rejections: Step = async (pool, sweep, after) => {
  const { organisationId } = sweep;
  // What uploads have left to be settled has ids too.
  await settleOrganisation(pool, organisationId);
  const { rows } = await pool.query<{
    rejection_id: string;
    type: UploadType;
    kind_id: string;
    record_id: string | null;
    record: string | null;
  }>(
    `select rejection_id, type, kind_id, record_id, record from rejections
     where organisation_id = $1 and rejection_id > $2 and type = any ($3::text[])
     order by rejection_id limit ${limits.erasureTextsPerStep}`,
    [organisationId, after ?? firstUuid, personalTables.map(({ type }) => type)],
  );
  const found = rows.flatMap(({ rejection_id, type, kind_id, record_id, record }) => {
    const ids = [
      ...(record_id === null ? [] : [record_id]),
      ...(record === null ? [] : idsInText(type, record)),
    ];
    const erasureId = erasureOf(sweep, ids);
    return erasureId === undefined ? [] : { rejection_id, kind_id, erasureId };
  });
  const last = rows.length === limits.erasureTextsPerStep ? (rows.at(-1)?.rejection_id ?? null) : null;
  return async (client) => {
    const there = await lockRejections(
      client,
      organisationId,
      found.map(({ rejection_id }) => rejection_id),
    );
    const leaving = found.filter(({ rejection_id }) => there.has(rejection_id));
    const rejected = new Map<string, number>();
    for (const { kind_id } of leaving) countChange(rejected, kind_id, -1);
    if (leaving.length > 0)
      await deleteLocked(
        client,
        organisationId,
        leaving.map(({ rejection_id }) => rejection_id),
      );
    return {
      done: [{ organisationId, stored: null, rejected, receipt: null }],
      rows: leaving.map(({ erasureId }) => erasureId),
      after: last,
    };
  };
};

/** The answers that receipts keep name the ids of failed customers. */
const receipts: Step = async (pool, sweep, after) => {
  const { organisationId } = sweep;
  const [requestId = firstUuid, batch = '0'] = after?.split(' ') ?? [];
  const { rows } = await pool.query<{ request_id: string; batch: number; answer: string }>(
    `select b.request_id, b.batch, b.answer
     from receipt_batches b join receipts r on r.organisation_id = b.organisation_id and r.request_id = b.request_id
     where b.organisation_id = $1 and r.organisation_id = $1 and (r.type = 'customers' or r.type is null)
       and (b.request_id, b.batch) > ($2, $3)
     order by b.request_id, b.batch limit ${limits.erasureAnswersPerStep}`,
    [organisationId, requestId, batch],
  );
  const found = rows.flatMap((row) => {
    const ids = [...row.answer.matchAll(uuidPattern)].map(([id]) => id.toLowerCase());
    const erasureId = erasureOf(sweep, ids);
    return erasureId === undefined ? [] : { ...row, answer: answerWithout(sweep.ids, row.answer), erasureId };
  });
  const end = rows.length === limits.erasureAnswersPerStep ? rows.at(-1) : undefined;
  return async (client) => {
    for (const { request_id, batch: number, answer } of found) {
      const text = `update receipt_batches set answer = $4 where organisation_id = $1 and request_id = $2 and batch = $3`;
      await queryRows(client, { text, values: [organisationId, request_id, number, answer] }, 1);
    }
    return {
      done: [],
      rows: found.map(({ erasureId }) => erasureId),
      after: end ? `${end.request_id} ${end.batch}` : null,
    };
  };
};

/** A client may have put an id into an Idempotency-Key. */
function keysOf(table: string, forget: string): Step {
  return async (pool, sweep, after) => {
    const { organisationId } = sweep;
    const { rows } = await pool.query<{ key: string }>(
      `select distinct idempotency_key as key from ${table}
       where organisation_id = $1 and idempotency_key > $2 order by 1 limit ${limits.erasureRowsPerScan}`,
      [organisationId, after ?? ''],
    );
    const found = rows.flatMap(({ key }) => {
      const ids = [key, ...[...key.matchAll(uuidPattern)].map(([id]) => id.toLowerCase())];
      const erasureId = erasureOf(sweep, ids);
      return erasureId === undefined ? [] : { key, erasureId };
    });
    const last = rows.length === limits.erasureRowsPerScan ? (rows.at(-1)?.key ?? null) : null;
    return async (client) => {
      if (found.length > 0)
        await client.query(`${forget} where organisation_id = $1 and idempotency_key = any ($2::text[])`, [
          organisationId,
          found.map(({ key }) => key),
        ]);
      return { done: [], rows: found.map(({ erasureId }) => erasureId), after: last };
    };
  };
}

/** What the report is counted from; its figures stay. */
const report: Step = async (_, sweep) => async (client) => {
  const { organisationId, ids } = sweep;
  // Waits for a step of the report that is running. Later ones read interactions without their people.
  await client.query('select from report_progress where organisation_id = $1 for update', [organisationId]);
  await queryRow(client, {
    text: 'select erase_from_report($1, $2::uuid[])',
    values: [organisationId, [...ids.keys()].filter(isUuid)],
  });
  return { done: [], rows: [], after: null };
};

/** The steps for everything that is not a record or an interaction. */
export const eraseTexts: readonly (readonly [name: string, step: Step])[] = [
  ['rejections', rejections],
  ['receipts', receipts],
  ['receipt_keys', keysOf('receipts', 'update receipts set idempotency_key = null')],
  ['upload_idempotency_keys', keysOf('upload_idempotency_keys', 'delete from upload_idempotency_keys')],
  [
    'interaction_idempotency_keys',
    keysOf('interaction_idempotency_keys', 'delete from interaction_idempotency_keys'),
  ],
  ['report', report],
];
