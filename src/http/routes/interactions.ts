import { hash, randomUUIDv7 } from 'node:crypto';
import { ChangeCursors } from '../../changes/change-cursor.ts';
import { freshCursor } from '../../changes/change-log.ts';
import { type Detail, invalidRequest, RequestError } from '../../errors.ts';
import { type InteractionAnswer, interactionAnswer } from '../../interactions/answer.ts';
import { findInteraction, type NewInteraction, storedForm } from '../../interactions/interaction-rows.ts';
import type { InteractionWriter } from '../../interactions/interaction-writer.ts';
import { interactionFilters, interactionLines, listPage } from '../../interactions/list-interactions.ts';
import { type Alone, type Recorded, recordAlone } from '../../interactions/record-alone.ts';
import { endOfBody, findingFault, ObjectReader, startOfJson } from '../../json/object-reader.ts';
import { limits } from '../../limits.ts';
import type { Pool } from '../../postgres/pool.ts';
import { CommitUnconfirmed } from '../../postgres/transactions.ts';
import {
  type FieldProblem,
  isUuid,
  makeCheck,
  type Row,
  unreadableRecord,
  uuid,
} from '../../registry/fields.ts';
import {
  checkedEventTime,
  type ItemType,
  interaction,
  interactionExample,
} from '../../registry/interaction.ts';
import { type Warning, WarningCounter } from '../../registry/warnings.ts';
import { acceptedAnswer, inSteps } from '../gate.ts';
import { exportOf, jsonLines, variesByAccept, wantsLines } from '../operation/accept.ts';
import { described, keyReused, notFound } from '../operation/described-answers.ts';
import {
  idempotencyKeyHeader,
  idempotencyReplayed,
  readIdempotencyKey,
} from '../operation/idempotency-key.ts';
import { type Operation, ownOf, principalOf } from '../operation/operation.ts';
import { aboutBrowserKeys, acceptedFromBrowser, uploadInteractions } from './upload.ts';

const tag = 'Interactions';

const record: Operation = {
  id: 'record-interaction',
  method: 'POST',
  path: '/user-interactions',
  tag,
  summary: 'Record an interaction',
  description:
    'Records one interaction of a user with an item. The item must exist, and so must the student if there is one. With ' +
    'an `Idempotency-Key` a retry is safe: the same body repeats the first answer.\n\n' +
    aboutBrowserKeys,
  permission: 'interactions:write',
  isForBrowsers: true,
  storesRecords: true,
  requestHeaders: idempotencyKeyHeader,
  requestBody: {
    schema: { $ref: '#/components/schemas/NewInteraction' },
    example: interactionExample,
    bytesMax: limits.interactionBodyBytesMax,
  },
  answers: {
    201: {
      ...described('The interaction as it is stored.', 'Interaction'),
      canBeReplayed: true,
      hasQuota: true,
    },
    202: acceptedFromBrowser,
    422: keyReused,
  },
  async handle(call, { pool, writer }) {
    const { organisationId, visitor } = principalOf(call);
    const { requestId, body: sent, overQuota } = call;
    const idempotencyKey = readIdempotencyKey(call);
    const isFromBrowser = visitor !== undefined;
    const request = {
      organisationId,
      requestId,
      body: sent,
      idempotencyKey,
      isFromBrowser,
      refusal: overQuota,
    };
    const record = () =>
      call.step('record interaction', () =>
        recordInteraction({ pool: pool.atOwner(organisationId), writer }, request),
      );
    if (isFromBrowser) {
      const { warnings } = await inSteps(record);
      return acceptedAnswer({ received: 1, errors: [], warnings });
    }
    const { interaction, warnings, isRepeated } = await record();
    const body = warnings.length > 0 ? { ...interaction, warnings } : interaction;
    return { status: 201, body, ...(isRepeated && { headers: idempotencyReplayed }) };
  },
};

const get: Operation = {
  id: 'get-interaction',
  method: 'GET',
  path: '/user-interactions/{interaction_id}',
  tag,
  summary: 'Get an interaction',
  description: 'Returns one interaction.',
  permission: 'interactions:read',
  pathParameters: { interaction_id: uuid({ description: 'the id of the interaction' }) },
  answers: {
    200: described('The interaction.', 'Interaction'),
    404: notFound,
  },
  async handle(call, parts) {
    const id = call.params.interaction_id;
    const found = isUuid(id) ? await findInteraction(...ownOf(call, parts), id) : undefined;
    if (!found) throw new RequestError('interaction_not_found');
    return { status: 200, body: interactionAnswer(found) };
  },
};

const list: Operation = {
  id: 'list-interactions',
  method: 'GET',
  path: '/user-interactions',
  tag,
  summary: 'List interactions',
  description:
    'Returns a page of interactions, the newest received first: send `next_cursor` as `cursor` until it is null. Filters ' +
    'can be combined. If few match, a search ends after a second with the results so far, if any; `next_cursor` ' +
    `continues it. With \`Accept: ${jsonLines}\` all that match come in one answer.`,
  permission: 'interactions:read',
  query: interactionFilters,
  answers: {
    200: {
      ...described('One page, or every interaction that matches.', 'InteractionPage'),
      hasChangesCursor: true,
      otherContent: { [jsonLines]: { schema: { type: 'string', description: 'one interaction per line' } } },
    },
  },
  async handle(call, parts) {
    const [pool, organisationId] = ownOf(call, parts);
    if (wantsLines(call)) {
      const signed = new ChangeCursors(await parts.cursors.for(organisationId, 'feed'));
      const cursor = await freshCursor(pool, organisationId, signed);
      return exportOf(interactionLines(pool, organisationId, call.query), cursor);
    }
    const body = await listPage(pool, organisationId, call.query);
    return { status: 200, headers: variesByAccept, body };
  },
};

export const interactionOperations: readonly Operation[] = [record, uploadInteractions, list, get];

const fields = Object.keys(interaction);
const userAt = fields.indexOf('user_id');
const reader = new ObjectReader(fields);
const check = makeCheck(interaction);

interface InteractionRequest {
  readonly organisationId: string;
  readonly requestId: string;
  readonly body: Buffer | undefined;
  readonly idempotencyKey: string | undefined;
  /** With a browser key, the response must not reveal whether the references exist or the person was erased. */
  readonly isFromBrowser?: boolean;
  /** The organisation may not store more data. Retries of stored interactions still succeed. */
  readonly refusal?: RequestError | undefined;
}

interface InteractionParts {
  readonly pool: Pool;
  readonly writer: InteractionWriter;
}

interface RecordedInteraction {
  readonly interaction: InteractionAnswer;
  readonly warnings: readonly Warning[];
  /** An earlier request with the same Idempotency-Key stored the interaction. */
  readonly isRepeated: boolean;
}

/** Keeps an interaction with a missing reference as a rejection, and fails, unless a browser key was used. */
export async function recordInteraction(
  parts: InteractionParts,
  { organisationId, requestId, body, idempotencyKey, isFromBrowser = false, refusal }: InteractionRequest,
): Promise<RecordedInteraction> {
  const warnings = new WarningCounter();
  const { read, hashed } = readInteraction(organisationId, body, warnings);
  const bodySha256 = () => `\\x${hash('sha256', JSON.stringify(hashed))}`;
  const added =
    idempotencyKey === undefined
      ? read
      : { ...read, claim: { key: idempotencyKey, bodySha256: bodySha256() } };
  const { stored, isRepeated } = await write(parts, added, { requestId, isFromBrowser, refusal }).catch(
    (error: unknown) => {
      throw error instanceof CommitUnconfirmed
        ? new RequestError('outcome_unknown', { cause: error })
        : error;
    },
  );
  return { interaction: interactionAnswer(stored), warnings: warnings.list(), isRepeated };
}

async function write(
  { pool, writer }: InteractionParts,
  added: NewInteraction,
  alone: Omit<Alone, 'references'>,
): Promise<Recorded> {
  const recorded = { stored: storedForm(added), isRepeated: false };
  if (!alone.refusal && (await writer.write(added))) return recorded;
  const tried = await recordAlone(pool, added, { ...alone, references: writer.references });
  if (!('refused' in tried)) return tried;
  if (alone.isFromBrowser) return recorded;
  throw refusal(tried.refused, false);
}

interface Read {
  readonly read: NewInteraction;
  /** Identifies the body. Whitespace and the order of fields make no difference. */
  readonly hashed: Row;
}

function readInteraction(organisationId: string, body: Buffer | undefined, warnings: WarningCounter): Read {
  if (body === undefined) throw refusal([unreadableRecord.not_an_object], false);
  let isWrapped = false;
  const { values, repeated, unreadable } = findingFault(body, () => {
    const read = reader.read(body, startOfJson(body), (name) => {
      warnings.unknownField(name);
      isWrapped ||= name === 'records';
    });
    endOfBody(body, read.end);
    return read;
  });
  if (unreadable) throw refusal([unreadableRecord[unreadable]], isWrapped);
  const { row, problems } = check(values, repeated);
  if (problems) throw refusal(problems, isWrapped);
  const read = {
    organisationId,
    interactionId: randomUUIDv7(),
    itemType: fieldOf(row, 'item_type') as ItemType,
    itemId: fieldOf(row, 'item_id') as string,
    studentId: fieldOf(row, 'student_id') as string | null,
    row,
    eventTime: checkedEventTime(fieldOf(row, 'event_timestamp') as string | number),
  };
  // Earlier releases stored and hashed a user_id as it was sent, and their retries must match.
  const sent = values[userAt];
  const isRewritten = typeof sent === 'string' && sent !== row[userAt];
  return { read, hashed: isRewritten ? row.with(userAt, sent) : row };
}

function refusal(problems: readonly FieldProblem[], isWrapped: boolean): RequestError {
  const details = problems.map(
    ({ field, code, message }): Detail => ({ field: field ?? 'body', code, message }),
  );
  return invalidRequest(...(isWrapped ? [wrapped, ...details] : details));
}

const wrapped: Detail = {
  field: 'records',
  code: 'unknown_field',
  message: 'is for uploads; send the fields of a single interaction at the top level of the body',
};

function fieldOf(row: Row, field: keyof typeof interaction) {
  return row[fields.indexOf(field)] ?? null;
}
