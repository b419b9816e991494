import { ChangeCursors } from '../../changes/change-cursor.ts';
import { freshCursor } from '../../changes/change-log.ts';
import { RequestError } from '../../errors.ts';
import { interactionAnswer } from '../../interactions/answer.ts';
import { findInteraction } from '../../interactions/interaction-rows.ts';
import { interactionFilters, interactionLines, listPage } from '../../interactions/list-interactions.ts';
import { recordInteraction } from '../../interactions/record-interaction.ts';
import { limits } from '../../limits.ts';
import { isUuid, uuid } from '../../registry/fields.ts';
import { interactionExample } from '../../registry/interaction.ts';
import { exportOf, jsonLines, variesByAccept, wantsLines } from '../operation/accept.ts';
import { acceptedAnswer, inSteps } from '../operation/browser-keys.ts';
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
