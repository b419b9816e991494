import { ChangeCursors, changeCursor } from '../../changes/change-cursor.ts';
import {
  type ChangesAsked,
  expired,
  LogReader,
  positionOf,
  type RecordSource,
  type RecordsRead,
} from '../../changes/read-changes.ts';
import { type StreamReader, streamChanges } from '../../changes/stream-changes.ts';
import { takePage } from '../../changes/take-page.ts';
import { interactionAnswer } from '../../interactions/answer.ts';
import { readInteractions } from '../../interactions/interaction-rows.ts';
import type { Principal } from '../../keys/authenticate.ts';
import { lacksPermission } from '../../keys/permissions.ts';
import { limits } from '../../limits.ts';
import { uuidsOf } from '../../postgres/binary/encoded-rows.ts';
import { type Client, type Pool, withClient } from '../../postgres/pool.ts';
import { allOf, inOneWrite, retryConflicts } from '../../postgres/transactions.ts';
import { charactersMax, takeRecords } from '../../records/read-records.ts';
import { optional, optionalForm, perPage } from '../../registry/fields.ts';
import { perType, type ResourceType } from '../../registry/resources.ts';
import { sentFields, type UploadType, uploadTypes } from '../../registry/upload-types.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import { goneBelow } from '../../retention/kept-days.ts';
import { exportOf, jsonLines, variesByAccept, wantsLines } from '../operation/accept.ts';
import { described, refused } from '../operation/described-answers.ts';
import { type Call, type Operation, type Parts, principalOf } from '../operation/operation.ts';

const someTypes = `(?:${uploadTypes.join('|')})`;
const listedTypes = new RegExp(`^${someTypes}(?:,${someTypes})*$`);

const notTypes = {
  code: 'invalid_value',
  message: `must be types separated by commas; the types are ${uploadTypes.join(', ')}`,
} as const;
const types = optionalForm(listedTypes, notTypes, {
  examples: ['shops,transactions'],
  description: 'only changes of these types, separated by commas; default is all',
});

const limit = optional(perPage('changes', limits.changesPerPageMax, limits.changesPerPageDefault));

export const changesOperation: Operation = {
  id: 'list-changes',
  method: 'GET',
  path: '/v1/changes',
  tag: 'Changes',
  summary: 'Read changes',
  description:
    'Returns created and changed records in order, each in its current version. Send `next_cursor` as `after` for the ' +
    'next changes; while `has_more` is true, more may be available immediately. A record that was changed several times ' +
    'may appear several times. An entry with `expired_before` reports that all records of its type that were received ' +
    `before that time have expired: remove them. With \`Accept: ${jsonLines}\` the answer is a stream: a line per change ` +
    `as it is stored, and every ${limits.changeHeartbeatMs / 1_000} seconds without one a line with the \`cursor\` ` +
    `alone. It ends after ${limits.changeStreamMs / 60_000} minutes; continue with the cursor of the last complete line. ` +
    'Changes are kept for a week, or as long as the operator has set; an older cursor gets 410. Changes of interactions ' +
    'also need the permission `interactions:read`; without it, list the other `types`.',
  permission: 'data:read',
  query: { after: changeCursor, types, limit },
  answers: {
    200: {
      ...described('One page, or changes as they happen.', 'ChangePage'),
      otherContent: {
        [jsonLines]: { schema: { type: 'string', description: 'one change per line, or only a cursor' } },
      },
    },
    410: refused(
      'The feed cannot continue from this cursor, or the organisation was deleted. Codes: `cursor_too_old`, `organisation_deleted`.',
    ),
  },
  async handle(call, parts) {
    const principal = principalOf(call);
    const { organisationId } = principal;
    const pool = parts.pool.forReaders(organisationId);
    const asked = await askedBy(call, principal, parts, pool);
    const isStream = wantsLines(call);
    const from = await positionOf(pool, asked, call.query.after as string | undefined);
    if (isStream) {
      const lines = streamChanges(pool, parts.changeWatch, asked, from, readerOf(call, principal, parts));
      return { ...exportOf(lines), bytes: limits.changeStreamBytes, isLive: true };
    }
    const { limit: perPage = limits.changesPerPageDefault } = call.query;
    const { changes, next, hasMore } = await retryConflicts(async () => {
      const taken: string[] = [];
      const page = await new LogReader(pool, asked, from, Number(perPage)).nextPage(Number(perPage));
      await takePage(asked, page, (change) => taken.push(change));
      return { next: page.next, hasMore: page.hasMore, changes: taken };
    });
    return {
      status: 200,
      headers: variesByAccept,
      body: `{"changes":[${changes.join(',')}],"next_cursor":"${asked.cursors.write(next)}","has_more":${hasMore}}`,
    };
  },
};

async function askedBy(
  { query }: Call,
  { organisationId, permissions }: Principal,
  parts: Parts,
  pool: Pool,
): Promise<ChangesAsked> {
  const asked = new Set<string>(query.types === undefined ? uploadTypes : String(query.types).split(','));
  // If interactions were silently skipped, they would be missing from the client's copy of the data.
  if (asked.has('interactions') && !permissions.includes('interactions:read'))
    throw lacksPermission('interactions:read');
  const cursors = new ChangeCursors(await parts.cursors.for(organisationId, 'feed'));
  return { organisationId, types: asked, records: recordsOf(pool, parts, organisationId), cursors };
}

const charactersOf = perType((type: string) => charactersMax(sentFields(type as UploadType)));

/** All statements share one connection, because under load, waiting for one for each of them can take a second. */
function recordsOf(pool: Pool, { longReads }: Parts, organisationId: string): RecordSource {
  return {
    async read(reads) {
      const readAll = (client: Client) =>
        allOf(
          inOneWrite(client, () => reads.map((read) => takeCurrentRecords(client, organisationId, read))),
        );
      await longReads.take(organisationId, () => withClient(pool, readAll));
    },
    charactersMax: charactersOf,
  };
}

async function takeCurrentRecords(
  client: Client,
  organisationId: string,
  { type, count, ids, take }: RecordsRead,
): Promise<void> {
  if (type !== 'interactions') return takeRecords(client, organisationId, type as ResourceType, ids, take);
  const wanted = uuidsOf(ids, count) as string[];
  const found = await readInteractions(client, organisationId, wanted);
  const byId = new Map(found.map((one) => [one.interaction_id, one]));
  // Query this id after reading the records, so that any interaction deleted in the meantime has a smaller id.
  const below = byId.size < wanted.length ? await goneBelow(client, organisationId) : firstUuid;
  for (const id of wanted) {
    const stored = byId.get(id);
    if (stored) take(id, JSON.stringify(interactionAnswer(stored)));
    else take(id, id < below ? expired : 'null');
  }
}

function readerOf({ hold, onClose }: Call, { keyId }: Principal, { keys }: Parts): StreamReader {
  const closed = new AbortController();
  onClose(() => closed.abort());
  return {
    hold,
    gone: closed.signal,
    async isAllowed() {
      const key = await keys.find(keyId);
      return key !== undefined && !key.suspended && !key.deleted && key.endsMs > performance.now();
    },
  };
}
