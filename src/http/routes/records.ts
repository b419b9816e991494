import { ChangeCursors } from '../../changes/change-cursor.ts';
import { freshCursor } from '../../changes/change-log.ts';
import { RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { findRecord, type RecordsAsked, readLines, readPage } from '../../records/read-records.ts';
import { dateTime, type Field, flag, isUuid, optional, perPage, uuid } from '../../registry/fields.ts';
import {
  idFieldOf,
  type ResourceType,
  referencesOf,
  resources,
  resourceTypes,
} from '../../registry/resources.ts';
import { type Instant, isoOf } from '../../registry/times.ts';
import { exportOf, jsonLines, variesByAccept, wantsLines } from '../operation/accept.ts';
import { described, notFound } from '../operation/described-answers.ts';
import {
  type Answer,
  type Call,
  type Operation,
  ownOf,
  type Parts,
  principalOf,
} from '../operation/operation.ts';
import { pageSchemaName, storedSchemaName } from '../operation/stored-records.ts';

const tag = 'Records';

export const recordOperations: readonly Operation[] = resourceTypes.flatMap((type) => [
  listOperation(type),
  getOperation(type),
]);

function getOperation(type: ResourceType): Operation {
  const idField = idFieldOf(type);
  const { singular } = resources[type];
  return {
    id: `get-${type}`,
    method: 'GET',
    path: `/v1/data/${type}/{${idField}}`,
    tag,
    summary: `Get ${/^[aeiou]/.test(singular) ? 'an' : 'a'} ${singular}`,
    description: 'Returns one stored record, even if it is marked as deleted.',
    permission: 'data:read',
    pathParameters: { [idField]: uuid({ description: `the id of the ${singular}` }) },
    answers: {
      200: described('The record, with null in every field without a value.', storedSchemaName(type)),
      404: notFound,
    },
    async handle(call, parts) {
      const id = call.params[idField];
      const found = isUuid(id) ? await findRecord(...ownOf(call, parts), type, id) : undefined;
      if (!found) throw new RequestError('record_not_found');
      return { status: 200, body: found };
    },
  };
}

function listOperation(type: ResourceType): Operation {
  const words = type.replaceAll('-', ' ');
  return {
    id: `list-${type}`,
    method: 'GET',
    path: `/v1/data/${type}`,
    tag,
    summary: `List ${words}`,
    description: `Returns ${words} in the order of their ids, in pages or, with \`Accept: ${jsonLines}\`, all in one answer.`,
    permission: 'data:read',
    query: filtersOf(type),
    answers: {
      200: {
        ...described('One page, or every record.', pageSchemaName(type)),
        hasChangesCursor: true,
        otherContent: { [jsonLines]: { schema: { type: 'string', description: 'one record per line' } } },
      },
    },
    handle: (call, parts) => list(type, call, parts),
  };
}

function filtersOf(type: ResourceType): Readonly<Record<string, Field>> {
  const words = type.replaceAll('-', ' ');
  const filters: Record<string, Field> = {
    ...Object.fromEntries(
      referencesOf(type).map(({ field }) => [
        field,
        uuid({ description: `only ${words} of this ${field.replace(/_id$/, '')}` }),
      ]),
    ),
    stored_since: dateTime({ description: 'only records created or changed at this time or later' }),
    include_deleted: flag({ description: 'include records marked as deleted; default false' }),
    cursor: uuid({
      description: 'the `next_cursor` of the previous page, or the id of the last record received',
    }),
    limit: perPage('records', limits.recordsPerPageMax, limits.recordsPerPageDefault),
  };
  return Object.fromEntries(Object.entries(filters).map(([name, field]) => [name, optional(field)]));
}

async function list(type: ResourceType, call: Call, parts: Parts): Promise<Answer> {
  const asked = readAsked(type, call);
  const pool = parts.pool.for(asked.organisationId);
  const { limit = limits.recordsPerPageDefault } = call.query;
  if (wantsLines(call)) {
    // Created before the first record is read, so that the feed contains anything stored too late for the export.
    const cursors = new ChangeCursors(await parts.cursors.for(asked.organisationId, 'feed'));
    const cursor = await freshCursor(pool, asked.organisationId, cursors);
    return exportOf(readLines(pool, asked), cursor);
  }
  const { records, next } = await readPage(pool, asked, Number(limit));
  return {
    status: 200,
    headers: variesByAccept,
    body: `{"records":[${records.join(',')}],"next_cursor":${JSON.stringify(next)}}`,
  };
}

function readAsked(type: ResourceType, call: Call): RecordsAsked {
  const {
    limit: _,
    cursor,
    stored_since: storedSince,
    include_deleted: includeDeleted,
    ...equal
  } = call.query;
  return {
    organisationId: principalOf(call).organisationId,
    type,
    includeDeleted: includeDeleted === true,
    storedSince: storedSince === undefined ? undefined : isoOf(storedSince as Instant),
    equal: equal as Record<string, string>,
    after: cursor as string | undefined,
  };
}
