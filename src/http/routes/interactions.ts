import { RequestError } from '../../errors.ts';
import { parseBody } from '../../ingest/parse-body.ts';
import { interactionAnswer } from '../../interactions/answer.ts';
import { interactionFilters, listPage } from '../../interactions/list-interactions.ts';
import { recordInteraction } from '../../interactions/record-interaction.ts';
import { isUuid, uuid } from '../../registry/fields.ts';
import { interactionExample } from '../../registry/interaction.ts';
import { findInteraction } from '../../store/interactions.ts';
import { idempotencyKeyHeader, readIdempotencyKey } from '../idempotency-key.ts';
import { type Operation, principalOf } from '../operation.ts';

const tag = 'Interactions';
const interactionSchema = { $ref: '#/components/schemas/Interaction' };
const example = interactionAnswer({
  ...interactionExample,
  interaction_id: '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f',
});

const record: Operation = {
  id: 'record-interaction',
  method: 'POST',
  path: '/user-interactions',
  tag,
  summary: 'Record an interaction',
  description:
    'Records one interaction of a user with an item. The item, and the student where one is named, must exist already. ' +
    'With an `Idempotency-Key` a retry is safe: the same body gives the first answer again.',
  permission: 'interactions:write',
  requestHeaders: idempotencyKeyHeader,
  requestBody: { schema: { $ref: '#/components/schemas/NewInteraction' }, example: interactionExample },
  answers: {
    201: { description: 'The interaction as it is stored.', schema: interactionSchema, example },
    400: {
      description: 'A field is wrong; `details` names it.',
      schema: { $ref: '#/components/schemas/Error' },
    },
    422: {
      description: 'The `Idempotency-Key` was used with another body.',
      schema: { $ref: '#/components/schemas/Error' },
    },
  },
  async handle(call, parts) {
    const { interaction, warnings } = await recordInteraction(parts, {
      organisationId: principalOf(call).organisationId,
      body: parseBody(call.body),
      idempotencyKey: readIdempotencyKey(call),
    });
    return { status: 201, body: warnings.length > 0 ? { ...interaction, warnings } : interaction };
  },
};

const get: Operation = {
  id: 'get-interaction',
  method: 'GET',
  path: '/user-interactions/{interaction_id}',
  tag,
  summary: 'Get an interaction',
  description: 'Gives one interaction by the id it got when it was recorded.',
  permission: 'interactions:read',
  pathParameters: { interaction_id: uuid() },
  answers: {
    200: { description: 'The interaction.', schema: interactionSchema, example },
    404: { description: 'There is none with this id.', schema: { $ref: '#/components/schemas/Error' } },
  },
  async handle(call, { pool }) {
    const id = call.params.interaction_id;
    const found = isUuid(id) ? await findInteraction(pool, principalOf(call).organisationId, id) : undefined;
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
    'Gives interactions, the newest received first, a page at a time: pass `next_cursor` on as `cursor` until it is null. ' +
    'Of `interaction_type`, `item_type` and `source` only one can be asked for at a time, unless `student_id`, ' +
    '`user_id`, `item_id` or `recommendation_id` narrows the search.',
  permission: 'interactions:read',
  query: interactionFilters,
  answers: {
    200: {
      description: 'One page.',
      schema: { $ref: '#/components/schemas/InteractionPage' },
      example: { interactions: [example], next_cursor: null },
    },
    400: { description: 'A parameter is unknown or wrong.', schema: { $ref: '#/components/schemas/Error' } },
  },
  async handle(call, { pool }) {
    const page = await listPage(pool, principalOf(call).organisationId, call.query);
    return { status: 200, body: page };
  },
};

export const interactionOperations: readonly Operation[] = [record, list, get];
