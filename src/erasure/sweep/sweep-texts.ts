import { type KeyTable, nextAnswers, nextKeys, nextRejections } from '../../people/find-texts.ts';
import { queryRow, queryRows } from '../../postgres/transactions.ts';
import { isUuid } from '../../registry/fields.ts';
import { countChange } from '../../rejections/rejection-kinds.ts';
import { deleteLocked, lockRejections } from '../../rejections/rejections.ts';
import { settleOrganisation } from '../../rejections/unsettled-batches.ts';
import { answerWithout } from '../../suppression/hidden-ids.ts';
import type { Step, Sweep } from './sweep-step.ts';

/** Returns the erasure that the first of these people belongs to. */
function erasureOf({ ids }: Sweep, { named: [first = ''] }: { readonly named: readonly string[] }): string {
  return ids.get(first) as string;
}

/** Deletes failed records that contain the people's ids, whatever the reason for the failure. */
const rejections: Step = async (pool, sweep, from) => {
  const { organisationId } = sweep;
  // Upload batches that have not been settled yet can also contain ids.
  await settleOrganisation(pool, organisationId);
  const { found, after } = await nextRejections(pool, sweep, from);
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
      rows: leaving.map((one) => erasureOf(sweep, one)),
      after,
    };
  };
};

/** Removes the ids of failed customer records from the responses that are stored in receipts. */
const receipts: Step = async (pool, sweep, from) => {
  const { organisationId, ids } = sweep;
  const { found, after } = await nextAnswers(pool, sweep, from);
  return async (client) => {
    for (const { request_id, batch, answer } of found) {
      const text = `update receipt_batches set answer = $4 where organisation_id = $1 and request_id = $2 and batch = $3`;
      const values = [organisationId, request_id, batch, answerWithout(ids, answer)];
      await queryRows(client, { text, values }, 1);
    }
    return { done: [], rows: found.map((one) => erasureOf(sweep, one)), after };
  };
};

/** Removes Idempotency-Keys that contain an id, because clients can choose any string as a key. */
function keysOf(table: KeyTable, forget: string): Step {
  return async (pool, sweep, from) => {
    const { found, after } = await nextKeys(pool, table, sweep, from);
    return async (client) => {
      if (found.length > 0)
        await client.query(`${forget} where organisation_id = $1 and idempotency_key = any ($2::text[])`, [
          sweep.organisationId,
          found.map(({ key }) => key),
        ]);
      return { done: [], rows: found.map((one) => erasureOf(sweep, one)), after };
    };
  };
}

/** Erases the data from which the report is calculated. The report's figures stay. */
const report: Step = async (_, sweep) => async (client) => {
  const { organisationId, ids } = sweep;
  // Wait for a report step that is running. Later report steps read interactions that no longer contain these people.
  await client.query('select from report_progress where organisation_id = $1 for update', [organisationId]);
  await queryRow(client, {
    text: 'select erase_from_report($1, $2::uuid[])',
    values: [organisationId, [...ids.keys()].filter(isUuid)],
  });
  return { done: [], rows: [], after: null };
};

/** The steps for everything other than records and interactions. */
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
