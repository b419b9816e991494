import { interactionAnswer } from '../interactions/answer.ts';
import { readInteractions, uuidLiteral } from '../interactions/interaction-rows.ts';
import { mapInTurns } from '../json/map-in-turns.ts';
import { limits } from '../limits.ts';
import { type InteractionsPlace, nextInteractions, nextRows } from '../people/find-rows.ts';
import { type Search, type Wanted, wantedAmong } from '../people/people.ts';
import type { PersonalTable } from '../people/personal-tables.ts';
import { readAnswerTexts, readKeys, readRejectionTexts } from '../people/read-texts.ts';
import { binaryArray } from '../postgres/binary/array-writer.ts';
import type { Client } from '../postgres/pool.ts';
import { queryRow, queryRows } from '../postgres/transactions.ts';
import type { BatchAnswer } from '../receipts/batch-answer.ts';
import { takeRecords } from '../records/read-records.ts';
import { readUuid } from '../registry/fields.ts';
import { peopleOf } from '../registry/personal.ts';
import { personalFields, type UploadType } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { rejectionAsJson } from '../rejections/find-rejections.ts';
import { readRejections } from '../rejections/rejections.ts';
import type { KeyTable } from '../suppression/idempotency-keys.ts';
import { idsInFailed, objectIn, uuidsIn, withoutErased } from '../suppression/ids-in-text.ts';
import { accessLimits } from './limits.ts';

/** Whom a step looks for, and whom it has to leave out. */
export interface Collection extends Search {
  /** People who are being erased or were erased. Records that contain their ids are not collected. */
  readonly hiddenAmong: (ids: Iterable<string>) => Promise<ReadonlySet<string>>;
}

export interface CollectedRecord {
  readonly id: string;
  readonly record: string;
  /** All people's ids in the record. */
  readonly people: readonly string[];
  readonly requests: readonly string[];
}

interface Collected<P> {
  readonly found: readonly CollectedRecord[];
  readonly next: P | null;
}

type WantedIds = ReadonlyMap<string, readonly Wanted[]>;

function requestsOf(wanted: WantedIds, people: readonly string[]): string[] {
  return [...new Set(people.flatMap((id) => wanted.get(id) ?? []).map(({ request }) => request))];
}

/** A current record. Its person may have been removed or replaced since the row was found. */
interface Read {
  readonly id: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly record: string;
}

/**
 * `seen` contains the users of people's interactions. Others may use the same device, so a user is not collected, and
 * the organisation decides whether it is the same person.
 */
export async function collectRows(
  client: Client,
  collection: Collection,
  table: PersonalTable,
  after: unknown,
): Promise<Collected<unknown> & { readonly seen: readonly CollectedRecord[] }> {
  const { type } = table;
  const { found, next } =
    type === 'interactions'
      ? await nextInteractions(client, collection, after as InteractionsPlace | null, false)
      : await nextRows(client, collection, table, after as string | null);
  const ids = found.map(({ id }) => id);
  const read = ids.length === 0 ? [] : await readAll(client, collection.organisationId, type, ids);
  const fields = personalFields(type);
  const textIn = ({ values }: Read, field: string) => {
    const value = values[field];
    return typeof value === 'string' ? value : null;
  };
  const peopleIn = (one: Read) => fields.identifying.flatMap((field) => textIn(one, field) ?? []);
  const wanted = await wantedAmong(client, collection, read.flatMap(peopleIn));
  const records = read.flatMap((one) => {
    const requests = requestsOf(
      wanted,
      peopleOf(fields, (field) => textIn(one, field)),
    );
    return requests.length === 0
      ? []
      : { id: one.id, record: one.record, people: peopleIn(one), requests, one };
  });
  const seen = records.flatMap(({ one, requests, people }) =>
    fields.alone.flatMap((field) => {
      const user = textIn(one, field);
      const asking = requests.filter((request) => !requestsOf(wanted, [user ?? '']).includes(request));
      if (user === null || asking.length === 0) return [];
      return { id: user, record: JSON.stringify({ user_id: user }), people, requests: asking };
    }),
  );
  return { found: records, seen, next };
}

async function readAll(
  client: Client,
  organisationId: string,
  type: UploadType,
  ids: readonly string[],
): Promise<Read[]> {
  if (type === 'interactions')
    return (await readInteractions(client, organisationId, ids)).map((values) => ({
      id: values.interaction_id,
      values,
      record: JSON.stringify(interactionAnswer(values)),
    }));
  const read: Read[] = [];
  await takeRecords(client, organisationId, type, binaryArray('uuid', ids), (id, record) => {
    // A record is null if its person has been erased since it was found.
    const values = JSON.parse(record);
    if (values !== null) read.push({ id, values, record });
  });
  return read;
}

export async function collectRejections(
  client: Client,
  collection: Collection,
  after: string | null,
): Promise<Collected<string>> {
  const { organisationId } = collection;
  const { texts, next } = await readRejectionTexts(client, organisationId, after);
  const all = texts.flatMap(({ ids }) => ids);
  const wanted = await wantedAmong(client, collection, all);
  const ids = texts.filter((one) => one.ids.some((id) => wanted.has(id))).map((one) => one.rejection_id);
  const read =
    ids.length === 0 ? [] : await readRejections(client, organisationId, ids, limits.rejectionPageBytesMax);
  const last = read.at(-1)?.rejection_id;
  const hidden = await collection.hiddenAmong((await mapInTurns(read, idsInFailed)).flat());
  const found = await mapInTurns(read, (stored) => {
    const rejection = withoutErased(stored, hidden);
    if (!rejection) return [];
    const people = idsInFailed(rejection);
    const requests = requestsOf(wanted, ownersOf(rejection, people));
    return requests.length === 0
      ? []
      : {
          id: rejection.rejection_id,
          // The JSON as sent may contain line breaks between tokens, but a record in the download must be a single line.
          record: rejectionAsJson(rejection).replaceAll(/[\r\n]/g, ' '),
          people,
          requests,
        };
  });
  return { found: found.flat(), next: last !== undefined && last !== ids.at(-1) ? last : next };
}

/** Returns all people in the failed record if it cannot be decided to whom it belongs. */
function ownersOf(
  { type, record }: { readonly type: UploadType; readonly record: string | null },
  people: readonly string[],
): readonly string[] {
  const { owners, alone } = personalFields(type);
  if (alone.length === 0) return people;
  const values = record === null ? undefined : objectIn(record);
  // An invalid id names nobody.
  const named = owners.flatMap((field) => readUuid(String(values?.[field])) ?? []);
  return named.length > 0 ? named : people;
}

/** Collects only the parts of stored upload responses that are about these people. */
export async function collectAnswers(
  client: Client,
  collection: Collection,
  after: string | null,
): Promise<Collected<string>> {
  const { texts, next } = await readAnswerTexts(client, collection.organisationId, after);
  const all = texts.flatMap(({ ids }) => ids);
  const wanted = await wantedAmong(client, collection, all);
  const found = texts.filter(({ ids }) => ids.some((id) => wanted.has(id)));
  const hidden = await collection.hiddenAmong(found.flatMap(({ ids }) => ids));
  return {
    found: found.flatMap(({ request_id, batch, answer }) => {
      const { data } = JSON.parse(answer) as BatchAnswer;
      const errors = data.errors.map((error) => ({ error, people: uuidsIn(JSON.stringify(error)) }));
      const visible = errors.filter(({ people }) => !people.some((id) => hidden.has(id)));
      const requests = requestsOf(
        wanted,
        visible.flatMap(({ people }) => people),
      );
      return requests.map((request) => {
        const own = visible.filter(({ people }) => requestsOf(wanted, people).includes(request));
        const record = { request_id, batch, type: data.type, errors: own.map(({ error }) => error) };
        return {
          id: `${request_id}/${batch}`,
          record: JSON.stringify(record),
          people: own.flatMap(({ people }) => people),
          requests: [request],
        };
      });
    }),
    next,
  };
}

export async function collectKeys(
  client: Client,
  collection: Collection,
  table: KeyTable,
  after: string | null,
): Promise<Collected<string>> {
  const { texts, next } = await readKeys(client, table, collection.organisationId, after);
  const all = texts.flatMap(({ ids }) => ids);
  const wanted = await wantedAmong(client, collection, all);
  const found = texts
    .filter(({ ids }) => ids.some((id) => wanted.has(id)))
    .map(({ key, ids }) => ({
      id: key,
      record: JSON.stringify({ idempotency_key: key }),
      people: ids,
      requests: requestsOf(wanted, ids),
    }));
  return { found, next };
}

/**
 * For each user that was seen together with a person, counts the other students that the user was seen with, on days
 * that are over. Returns where the next step continues, or null at the end.
 */
export async function countOtherStudents(
  client: Client,
  organisationId: string,
  after: readonly string[] | null,
): Promise<string[] | null> {
  const { rows } = await client.query<{ request: string; id: string }>(
    `select a.access_request_id as request, a.id from access_request_records a
     join access_requests r on r.organisation_id = a.organisation_id and r.access_request_id = a.access_request_id
     where a.organisation_id = $1 and r.organisation_id = $1 and r.state = 'collecting' and a.type = 'users-seen-together'
       and (a.access_request_id, a.id) > ($2, $3)
     order by a.access_request_id, a.id limit ${accessLimits.seenUsersPerStep}`,
    [organisationId, ...(after ?? [firstUuid, ''])],
  );
  const { rows: days } = await client.query<{ end_id: string }>(
    'select end_id from interaction_partitions where is_indexed order by first_id desc limit 1',
  );
  const below = uuidLiteral(days[0]?.end_id ?? firstUuid);
  for (const { request, id } of rows) {
    const values = [organisationId, request, id];
    const { others } = await queryRow<{ others: number }>(client, { text: othersOf(below), values });
    const text = `
      update access_request_records set record = $4
      where organisation_id = $1 and access_request_id = $2 and type = 'users-seen-together' and id = $3`;
    const record = JSON.stringify({ user_id: id, other_students: others });
    await queryRows(client, { text, values: [...values, record] }, 1);
  }
  const last = rows.length === accessLimits.seenUsersPerStep ? rows.at(-1) : undefined;
  return last ? [last.request, last.id] : null;
}

const othersOf = (below: string) => `
  select count(distinct s.student_id)::integer as others from (
    select student_id from interactions
    where organisation_id = $1 and user_id = $3 and interaction_id < ${below}
    limit ${accessLimits.interactionsPerSeenUser}) as s
  where s.student_id is not null and not exists (
    select from access_request_ids i
    where i.organisation_id = $1 and i.access_request_id = $2 and i.id = s.student_id::text)`;
