import { limits } from '../limits.ts';
import { type Field, integer, oneOf, optional, type Scalar, text, uuid } from '../registry/fields.ts';
import { resourceTypes } from '../registry/resources.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import { inTransaction, type Pool } from '../store/pool.ts';
import { addCountChange } from '../store/record-counts.ts';
import {
  closeIfNone,
  discardSome,
  findRejections,
  pageOfRejections,
  type Reasons,
  type RejectionFilter,
  type StoredRejection,
  summariseRejections,
  typesRejected,
} from '../store/rejections.ts';
import { retryConflicts } from './store-batch.ts';

/** Which rejections are meant: the same everywhere. */
export const rejectionFilters = {
  type: optional(oneOf(resourceTypes)),
  code: optional(text({ description: 'of an error, such as `reference_not_found`' })),
  field: optional(text({ description: 'with which something is wrong' })),
  request_id: optional(uuid({ description: 'of the upload that was refused' })),
} satisfies Record<string, Field>;

export const rejectionPaging = {
  cursor: optional(uuid({ description: 'the `next_cursor` of the page before' })),
  limit: optional(
    integer({
      minimum: 1,
      maximum: limits.rejectionsPerPageMax,
      description: `how many a page, ${limits.rejectionsPerPageDefault} unless said`,
    }),
  ),
} satisfies Record<string, Field>;

/** A page as JSON. What was sent is put there as it is kept: read and written anew, it might not be the same. */
export async function rejectionPage(
  pool: Pool,
  organisationId: string,
  query: Readonly<Record<string, Scalar>>,
): Promise<string> {
  const { cursor, limit: asked, ...filter } = query;
  const limit = asked === undefined ? limits.rejectionsPerPageDefault : Number(asked);
  const { rejections, more } = await pageOfRejections(
    pool,
    organisationId,
    filter as RejectionFilter,
    { after: cursor as string | undefined, limit },
    limits.rejectionPageBytesMax,
  );
  const written = rejections.map((rejection) => {
    const head = JSON.stringify(headOf(rejection));
    return `${head.slice(0, -1)},"record":${rejection.record ?? 'null'}}`;
  });
  const next = more ? (rejections.at(-1)?.rejection_id ?? null) : null;
  return `{"rejections":[${written.join(',')}],"next_cursor":${JSON.stringify(next)}}`;
}

function headOf({ rejection_id, type, request_id, index, record_id, ...reasons }: StoredRejection) {
  const rejected = timeOfUuidV7(rejection_id);
  return { rejection_id, type, request_id, index, id: record_id, rejected, errors: errorsOf(reasons) };
}

function errorsOf({ fields, codes, messages }: Reasons) {
  return codes.map((code, at) => ({ field: fields[at] || null, code, message: messages[at] ?? '' }));
}

export async function rejectionSummary(pool: Pool, organisationId: string, filter: RejectionFilter) {
  const groups = await summariseRejections(pool, organisationId, filter, limits.rejectionGroupsMax);
  const examples = await findRejections(
    pool,
    organisationId,
    groups.map(({ first }) => first),
  );
  const byId = new Map(examples.map((example) => [example.rejection_id, headOf(example)]));
  const rejections = groups.map(({ type, code, field, count, first, last }) => {
    const example = byId.get(first);
    const error = example?.errors.find((one) => one.code === code && (one.field ?? '') === field);
    return {
      type,
      code,
      field: field || null,
      count: Number(count),
      first_seen: timeOfUuidV7(first),
      last_seen: timeOfUuidV7(last),
      // It may have left since it was counted.
      example: example
        ? {
            rejection_id: example.rejection_id,
            request_id: example.request_id,
            index: example.index,
            id: example.id,
            message: error?.message ?? '',
          }
        : null,
    };
  });
  return { rejections };
}

/** Removes what matches, so many at a time that no transaction is long; returns how many there were. */
export async function discardRejections(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
): Promise<number> {
  let discarded = 0;
  for (const type of await typesRejected(pool, organisationId)) {
    if (filter.type !== undefined && filter.type !== type) continue;
    let after: string | undefined;
    do {
      const { gone, last } = await discardBatch(pool, organisationId, { ...filter, type }, after);
      discarded += gone;
      after = last;
    } while (after !== undefined);
    await closeIfNone(pool, organisationId, type);
  }
  return discarded;
}

async function discardBatch(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter & { readonly type: string },
  after: string | undefined,
) {
  return retryConflicts(() =>
    inTransaction(pool, async (client, sendLast) => {
      const range = { after, rowsMax: limits.rejectionsPerDiscard };
      const some = await discardSome(client, organisationId, filter, range);
      const change = { records: 0, rejections: -some.gone, newestUpdated: null, lastUpload: null };
      if (some.gone > 0) sendLast((last) => addCountChange(last, organisationId, filter.type, change));
      return some;
    }),
  );
}
