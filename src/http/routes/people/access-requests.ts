import {
  type AccessRequest,
  accessRequestPage,
  findAccessRequest,
} from '../../../access/find-access-requests.ts';
import { collectedLines } from '../../../access/read-collected.ts';
import { cancelAccess, requestAccess } from '../../../access/request-access.ts';
import { RequestError } from '../../../errors.ts';
import { limits } from '../../../limits.ts';
import type { AskedPage } from '../../../postgres/keyset-page.ts';
import { isUuid, optional, perPage, uuid } from '../../../registry/fields.ts';
import { jsonLines } from '../../operation/accept.ts';
import { notFound, onePage, refused } from '../../operation/described-answers.ts';
import { type Call, type Operation, ownOf, type Parts, principalOf } from '../../operation/operation.ts';
import { peopleFields, peopleSchema, readPeople } from '../../operation/people.ts';

const tag = 'Privacy';
const schema = { $ref: '#/components/schemas/AccessRequest' };
const permission = 'data:access';

const request: Operation = {
  id: 'request-access',
  method: 'POST',
  path: '/v1/access-requests',
  tag,
  summary: 'Request what is stored about people',
  description:
    'Collects everything that is stored about customers, by `customer_ids`, and about people known only from ' +
    'interactions, by `user_ids`. Request one person at a time, because the records do not show whose they are.',
  permission,
  storesRecords: true,
  requestBody: {
    schema: peopleSchema(peopleFields),
    bytesMax: limits.erasureBodyBytesMax,
    example: { customer_ids: ['e5b1c8d2-7f36-4a90-8c14-9d2e6f70b351'] },
  },
  answers: {
    202: { description: 'The access request. Follow it with its `access_request_id`.', schema },
    409: refused('Too many are open or kept. Code: `too_many_access_requests`.'),
  },
  async handle(call, { pool, references }) {
    const { organisationId, keyId } = principalOf(call);
    const asked = { organisationId, keyId, ...readPeople(peopleFields, call.body) };
    return {
      status: 202,
      body: await requestAccess(pool.for(organisationId), asked, references.suppressions),
    };
  },
};

const pathParameters = { access_request_id: uuid({ description: 'the id of the access request' }) };

async function foundRequest(call: Call, parts: Parts): Promise<AccessRequest> {
  const id = call.params.access_request_id;
  const found = isUuid(id) ? await findAccessRequest(...ownOf(call, parts), id) : undefined;
  if (!found) throw new RequestError('access_request_not_found');
  return found;
}

const get: Operation = {
  id: 'get-access-request',
  method: 'GET',
  path: '/v1/access-requests/{access_request_id}',
  tag,
  summary: 'Get an access request',
  description: 'Returns its progress. Without `records`, nothing was found.',
  permission,
  pathParameters,
  answers: { 200: { description: 'The access request.', schema }, 404: notFound },
  async handle(call, parts) {
    return { status: 200, body: await foundRequest(call, parts) };
  },
};

const list: Operation = {
  id: 'list-access-requests',
  method: 'GET',
  path: '/v1/access-requests',
  tag,
  summary: 'List access requests',
  description: 'Returns a page, the newest first: send `next_cursor` as `cursor` until it is null.',
  permission,
  query: {
    cursor: optional(uuid({ description: 'the `next_cursor` of the previous page' })),
    limit: optional(perPage('access requests', limits.erasuresPerPageMax, limits.erasuresPerPageDefault)),
  },
  answers: { 200: onePage('AccessRequestPage') },
  async handle(call, parts) {
    const asked = { limit: limits.erasuresPerPageDefault, ...call.query } as AskedPage;
    return { status: 200, body: await accessRequestPage(...ownOf(call, parts), asked) };
  },
};

const download: Operation = {
  id: 'download-access-request',
  method: 'GET',
  path: '/v1/access-requests/{access_request_id}/records',
  tag,
  summary: 'Download what was collected',
  description:
    'Returns NDJSON, `{"type", "id", "record"}` on each line, until it expires, 7 days after it was done.',
  permission,
  pathParameters,
  answers: {
    200: {
      description: 'The records.',
      mediaType: jsonLines,
      schema: { type: 'string', description: 'one record per line' },
    },
    404: notFound,
    409: refused('Records are still being collected. Code: `access_request_not_done`.'),
  },
  async handle(call, parts) {
    const { access_request_id, state } = await foundRequest(call, parts);
    if (state === 'expired') throw new RequestError('access_request_expired');
    if (state === 'cancelled') throw new RequestError('access_request_cancelled');
    if (state !== 'done') throw new RequestError('access_request_not_done');
    const lines = collectedLines(...ownOf(call, parts), access_request_id);
    return { status: 200, headers: { 'content-type': jsonLines }, body: lines };
  },
};

const cancel: Operation = {
  id: 'cancel-access-request',
  method: 'DELETE',
  path: '/v1/access-requests/{access_request_id}',
  tag,
  summary: 'Cancel an access request',
  description:
    'Stops collecting, and deletes what was collected. The request stays in the list as `cancelled`. An expired request ' +
    'is returned unchanged.',
  permission,
  pathParameters,
  answers: { 200: { description: 'The access request.', schema }, 404: notFound },
  async handle(call, parts) {
    const id = call.params.access_request_id;
    const found = isUuid(id) ? await cancelAccess(...ownOf(call, parts), id) : undefined;
    if (!found) throw new RequestError('access_request_not_found');
    return { status: 200, body: found };
  },
};

export const accessOperations: readonly Operation[] = [request, list, get, download, cancel];
