import { interactionAnswer } from '../interactions/answer.ts';
import { readInteractions } from '../interactions/interaction-rows.ts';
import { limits } from '../limits.ts';
import { nextInteractions } from '../people/find-interactions.ts';
import { nextRows } from '../people/find-rows.ts';
import {
  idsInKey,
  idsInRejection,
  type KeyTable,
  nextAnswers,
  nextKeys,
  nextRejections,
  uuidsIn,
} from '../people/find-texts.ts';
import type { Found } from '../people/people.ts';
import { identifyingFields, type PersonalTable, personalTables } from '../people/personal-tables.ts';
import { binaryArray } from '../postgres/binary/array-writer.ts';
import type { Client } from '../postgres/pool.ts';
import type { BatchAnswer } from '../receipts/batch-answer.ts';
import { takeRecords } from '../records/read-records.ts';
import type { ResourceType } from '../registry/resources.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { rejectionAsJson } from '../rejections/find-rejections.ts';
import { readRejections } from '../rejections/rejections.ts';
import { type CollectedRecord, type Collection, requestsOf } from './collection.ts';

/** Collects one kind of record. Each call collects a limited number of records. */
interface CollectingStep {
  readonly name: string;
  /** The type of the records in the download. */
  readonly type: string;
  readonly next: (
    client: Client,
    collection: Collection,
    from: string | null,
  ) => Promise<Found<CollectedRecord>>;
}

export const collectingSteps: readonly CollectingStep[] = [
  ...personalTables.map(ofTable),
  { name: 'rejections', type: 'rejections', next: rejections },
  { name: 'receipts', type: 'receipts', next: receipts },
  keysOf('receipt_keys', 'receipts'),
  keysOf('upload_idempotency_keys', 'upload_idempotency_keys'),
  keysOf('interaction_idempotency_keys', 'interaction_idempotency_keys'),
];

function ofTable(table: PersonalTable): CollectingStep {
  const { type } = table;
  const next = type === 'interactions' ? interactions : rowsOf(table, type);
  return { name: table.name, type, next };
}

function rowsOf(table: PersonalTable, type: ResourceType): CollectingStep['next'] {
  return async (client, collection, from) => {
    const next = await nextRows(client, collection, table, from);
    const { found, after } = firstOf(next, (one, other) => (one.id < other.id ? -1 : 1));
    const read: CollectedRecord[] = [];
    const ids = binaryArray(
      'uuid',
      found.map(({ id }) => id),
    );
    if (found.length > 0)
      await takeRecords(client, collection.organisationId, type, ids, (id, record) => {
        read.push(...collected(collection, type, id, JSON.parse(record), record));
      });
    return { found: read, after };
  };
}

async function interactions(
  client: Client,
  collection: Collection,
  from: string | null,
): Promise<Found<CollectedRecord>> {
  const next = await nextInteractions(client, collection, from, true);
  const { found, after } = firstOf(next, (one, other) => (one.id > other.id ? -1 : 1));
  const rows =
    found.length === 0
      ? []
      : await readInteractions(
          client,
          collection.organisationId,
          found.map(({ id }) => id),
        );
  return {
    found: rows.flatMap((row) => {
      const record = JSON.stringify(interactionAnswer(row));
      return collected(collection, 'interactions', row.interaction_id, row, record);
    }),
    after,
  };
}

/** Limits a part to as many rows as fit into memory, because a scan can find far more. */
function firstOf<T extends { readonly id: string }>(
  { found, after }: Found<T>,
  inOrder: (one: T, other: T) => number,
): Found<T> {
  if (found.length <= limits.erasureRowsPerStep) return { found, after };
  const first = found.toSorted(inOrder).slice(0, limits.erasureRowsPerStep);
  return { found: first, after: first.at(-1)?.id ?? after };
}

/** Checks the row again, because its person may have been removed or replaced since the row was found. */
function collected(
  collection: Collection,
  type: UploadType,
  id: string,
  read: Readonly<Record<string, unknown>> | null,
  record: string,
): CollectedRecord[] {
  const people = identifyingFields(type)
    .map((field) => read?.[field])
    .filter((value) => typeof value === 'string');
  const requests = requestsOf(collection, people, studentOf(type, read));
  return requests.length === 0 ? [] : [{ id, record, people, requests }];
}

/** An interaction's student id, or null if it has none. */
function studentOf(type: UploadType, record: unknown): string | null {
  const { student_id } = (record ?? {}) as Readonly<Record<string, unknown>>;
  return type === 'interactions' && typeof student_id === 'string' ? student_id.toLowerCase() : null;
}

async function rejections(
  client: Client,
  collection: Collection,
  from: string | null,
): Promise<Found<CollectedRecord>> {
  const { found, after } = await nextRejections(client, collection, from);
  const ids = found.map(({ rejection_id }) => rejection_id);
  const read =
    ids.length === 0
      ? []
      : await readRejections(client, collection.organisationId, ids, limits.rejectionPageBytesMax);
  const last = read.at(-1)?.rejection_id;
  return {
    found: read.map((rejection) => {
      const people = idsInRejection(rejection);
      const student = studentOf(rejection.type, JSON.parse(rejection.record ?? 'null'));
      return {
        id: rejection.rejection_id,
        // The JSON as sent may contain line breaks between tokens, but a record in the download must be a single line.
        record: rejectionAsJson(rejection).replaceAll(/[\r\n]/g, ' '),
        people,
        requests: requestsOf(collection, people, student),
      };
    }),
    after: last !== undefined && last !== ids.at(-1) ? last : after,
  };
}

/** Collects the parts of stored upload responses that are about these people. */
async function receipts(
  client: Client,
  collection: Collection,
  from: string | null,
): Promise<Found<CollectedRecord>> {
  const { found, after } = await nextAnswers(client, collection, from);
  return {
    found: found.flatMap(({ request_id, batch, answer }) => {
      const { data } = JSON.parse(answer) as BatchAnswer;
      const errors = data.errors.map((error) => ({ error, people: uuidsIn(JSON.stringify(error)) }));
      const visible = errors.filter(({ people }) => !people.some((id) => collection.hidden.has(id)));
      const requests = requestsOf(
        collection,
        visible.flatMap(({ people }) => people),
      );
      return requests.map((request) => {
        const own = visible.filter(({ people }) => requestsOf(collection, people).includes(request));
        const record = { request_id, batch, type: data.type, errors: own.map(({ error }) => error) };
        return {
          id: `${request_id}/${batch}`,
          record: JSON.stringify(record),
          people: own.flatMap(({ people }) => people),
          requests: [request],
        };
      });
    }),
    after,
  };
}

/** Collects Idempotency-Keys that contain one of the ids. */
function keysOf(name: string, table: KeyTable): CollectingStep {
  return {
    name,
    type: 'idempotency-keys',
    async next(client, collection, from) {
      const { found, after } = await nextKeys(client, table, collection, from);
      const keys = found.map(({ key, named }) => ({
        id: key,
        record: JSON.stringify({ idempotency_key: key }),
        people: idsInKey(key),
        requests: requestsOf(collection, named),
      }));
      return { found: keys, after };
    },
  };
}
