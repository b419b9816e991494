// rejections/: keeps, finds and removes failed records.

import { storeInTransaction } from '../bookkeeping/store.ts';
import { mapInTurns } from '../json/map-in-turns.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { beginAgainUnless } from '../postgres/transactions.ts';
import { type Field, oneOf, optional, perPage, problemCodes, text, uuid } from '../registry/fields.ts';
import { uploadTypes } from '../registry/upload-types.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import { inOneSnapshot, openIdsAmong } from '../suppression/hidden-ids.ts';
import { withoutErased } from '../suppression/ids-in-text.ts';
import { countChange, listKinds, type Reasons } from './rejection-kinds.ts';
import {
  countByKind,
  deleteRejections,
  endsOfKinds,
  listIds,
  lockRejections,
  pageOfRejections,
  type RejectionFilter,
  readExamples,
  type StoredRejection,
} from './rejections.ts';
import { settleOrganisation } from './unsettled-batches.ts';

export const rejectionFilters = {
  type: optional(oneOf(uploadTypes)),
  code: optional(oneOf(problemCodes, { description: 'only rejections with an error of this code' })),
  field: optional(
    text({
      codePointsMax: limits.unknownFieldNameCharactersMax,
      description: 'only rejections with an error in this field',
    }),
  ),
  request_id: optional(uuid({ description: 'only rejections of this upload' })),
  run_id: optional(uuid({ description: 'only rejections of the uploads of this run' })),
} satisfies Record<string, Field>;

export const rejectionPaging = {
  cursor: optional(uuid({ description: 'the `next_cursor` of the previous page' })),
  limit: optional(perPage('rejections', limits.rejectionsPerPageMax, limits.rejectionsPerPageDefault)),
} satisfies Record<string, Field>;

/** Records are inserted as the stored text, because parsing and serialising could change them. */
export async function rejectionPage(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
  { cursor, limit = limits.rejectionsPerPageDefault }: { cursor?: string; limit?: number },
): Promise<string> {
  await settleOrganisation(pool, organisationId);
  const { rejections, hidden, more } = await pageOfRejections(
    pool,
    organisationId,
    filter,
    { after: cursor, limit },
    limits.rejectionPageBytesMax,
  );
  const errorsOfKinds = new Map<string, string>();
  const written = await mapInTurns(rejections, (stored) => {
    const shown = hidden.size === 0 ? stored : withoutErased(stored, hidden);
    const errors = errorsOfKinds.get(stored.kind_id) ?? errorsAsJson(stored);
    errorsOfKinds.set(stored.kind_id, errors);
    return rejectionAsJson(shown ?? { ...stored, record_id: null, record: null }, errors);
  });
  const next = more ? (rejections.at(-1)?.rejection_id ?? null) : null;
  return `{"rejections":[${written.join(',')}],"next_cursor":${JSON.stringify(next)}}`;
}

/** Only the errors and the record can contain characters that JSON escapes. */
export function rejectionAsJson(
  { rejection_id, type, request_id, index, record_id, mode, record, ...reasons }: StoredRejection,
  errors = errorsAsJson(reasons),
): string {
  const id = record_id === null ? null : `"${record_id}"`;
  return (
    `{"rejection_id":"${rejection_id}","type":"${type}","request_id":"${request_id}","index":${index},"id":${id},` +
    `"rejected":"${timeOfUuidV7(rejection_id)}","errors":${errors},"mode":"${mode}","record":${record}}`
  );
}

function errorsAsJson(reasons: Reasons): string {
  return JSON.stringify(errorsOf(reasons));
}

function errorsOf({ fields, codes, messages }: Reasons) {
  return codes.map((code, at) => ({ field: fields[at] || null, code, message: messages[at] ?? '' }));
}

/** `first` and `last` are ids, which contain times. The first rejection is the example. */
interface Group {
  readonly type: string;
  readonly code: string;
  readonly field: string | null;
  readonly message: string;
  count: number;
  first: string;
  last: string;
}

export async function rejectionSummary(pool: Pool, organisationId: string, filter: RejectionFilter) {
  await settleOrganisation(pool, organisationId);
  const groups = (await groupsOf(pool, organisationId, filter))
    .sort((a, b) => b.count - a.count || (nameOf(a) < nameOf(b) ? -1 : 1))
    .slice(0, limits.rejectionGroupsMax);
  const ids = groups.map(({ first }) => first);
  const { examples, hidden } = await inOneSnapshot(pool, async (client) => {
    const examples = await readExamples(client, organisationId, ids);
    const recordIds = examples.flatMap(({ record_id }) => record_id ?? []);
    return { examples, hidden: await openIdsAmong(client, organisationId, recordIds) };
  });
  const byId = new Map(examples.map((example) => [example.rejection_id, example]));
  const rejections = groups.map(({ type, code, field, message, count, first, last }) => {
    const example = byId.get(first);
    return {
      type,
      code,
      field,
      count,
      first_seen: timeOfUuidV7(first),
      last_seen: timeOfUuidV7(last),
      // The example may have been removed after it was counted.
      example: example
        ? {
            rejection_id: example.rejection_id,
            request_id: example.request_id,
            index: example.index,
            id: hidden.has(example.record_id ?? '') ? null : example.record_id,
            message,
          }
        : null,
    };
  });
  return { rejections };
}

function nameOf({ type, code, field }: Group): string {
  return [type, code, field].join(' ');
}

/** A record that failed with several errors is in a group for each of them. */
async function groupsOf(pool: Pool, organisationId: string, filter: RejectionFilter): Promise<Group[]> {
  const { code, field, requestIds } = filter;
  const kinds = (await listKinds(pool, organisationId, filter)).slice(0, limits.rejectionKindsSummarisedMax);
  const counted = requestIds && (await countByKind(pool, organisationId, requestIds));
  const kindIds = kinds.map(({ kind_id }) => kind_id);
  const ends = counted ?? (await endsOfKinds(pool, organisationId, kindIds));
  const groups = new Map<string, Group>();
  for (const { kind_id, type, count, ...reasons } of kinds) {
    const end = ends.get(kind_id);
    if (!end) continue;
    for (const error of errorsOf(reasons)) {
      if ((code ?? error.code) !== error.code || (field ?? error.field) !== error.field) continue;
      const group = {
        ...error,
        type,
        count: counted?.get(kind_id)?.count ?? count,
        first: end.first,
        last: end.last,
      };
      const known = groups.get(nameOf(group));
      if (!known) groups.set(nameOf(group), group);
      else {
        known.count += group.count;
        if (group.first < known.first) known.first = group.first;
        if (group.last > known.last) known.last = group.last;
      }
    }
  }
  return [...groups.values()];
}

export async function countRejections(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
): Promise<number> {
  const { requestIds } = filter;
  await settleOrganisation(pool, organisationId);
  const kinds = await listKinds(pool, organisationId, filter);
  const counted = requestIds && (await countByKind(pool, organisationId, requestIds));
  return kinds.reduce(
    (sum, { kind_id, count }) => sum + (counted ? (counted.get(kind_id)?.count ?? 0) : count),
    0,
  );
}

/** If `hasMore` is true, repeat the call. Each call deletes something if anything matches. */
export async function discardRejections(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
): Promise<{ readonly discarded: number; readonly hasMore: boolean }> {
  const deadlineMs = performance.now() + limits.discardRejectionsMs;
  const limit = limits.rejectionsPerDiscard;
  let discarded = 0;
  await settleOrganisation(pool, organisationId);
  for (const kindIds of await kindsToDiscard(pool, organisationId, filter)) {
    let ids: readonly string[] = [];
    do {
      if (discarded > 0 && performance.now() >= deadlineMs) return { discarded, hasMore: true };
      // Continue after the last id, because starting over would skip the same dead tuples each time.
      ids = await listIds(pool, organisationId, filter, kindIds, { after: ids.at(-1), limit });
      if (ids.length > 0) discarded += await discard(pool, organisationId, ids);
    } while (ids.length === limit);
  }
  return { discarded, hasMore: false };
}

/**
 * Each group has as many kinds as fit into one transaction. Discarding the oldest rejections of all kinds instead would
 * make each transaction read the next ids of every kind and discard only a few of them.
 */
async function kindsToDiscard(
  pool: Pool,
  organisationId: string,
  { requestIds, ...filter }: RejectionFilter,
): Promise<readonly (readonly string[] | undefined)[]> {
  if (filter.code === undefined && filter.field === undefined) return [undefined];
  const kinds = await listKinds(pool, organisationId, filter);
  if (requestIds !== undefined) return [kinds.map(({ kind_id }) => kind_id)];
  const groups: string[][] = [];
  let room = 0;
  for (const { kind_id, count } of kinds) {
    if (count > room) {
      groups.push([]);
      room = limits.rejectionsPerDiscard;
    }
    groups.at(-1)?.push(kind_id);
    room -= count;
  }
  return groups;
}

async function discard(pool: Pool, organisationId: string, ids: readonly string[]): Promise<number> {
  return storeInTransaction(pool, async (client) => {
    const gone = await deleteRejections(client, organisationId, ids);
    // Other transactions may have removed some rejections. This transaction must have deleted all remaining ones.
    const isWhole =
      gone.size === ids.length || (await lockRejections(client, organisationId, ids)).size === 0;
    beginAgainUnless(isWhole, 'a rejection was not removed');
    const rejected = new Map<string, number>();
    for (const kindId of gone.values()) countChange(rejected, kindId, -1);
    return { result: gone.size, done: [{ organisationId, stored: null, rejected, receipt: null }] };
  });
}
