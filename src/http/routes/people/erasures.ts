import { Readable } from 'node:stream';
import {
  CertificateSigner,
  certificateOf,
  certificatePage,
  certificatePagePolicy,
} from '../../../erasure/certificate.ts';
import { countErasure } from '../../../erasure/count-erasure.ts';
import { type Erasure, erasureModes, erasurePage, findErasure } from '../../../erasure/find-erasures.ts';
import { requestErasure } from '../../../erasure/request-erasure.ts';
import { RequestError } from '../../../errors.ts';
import { limits } from '../../../limits.ts';
import type { AskedPage } from '../../../postgres/keyset-page.ts';
import { databaseTime } from '../../../postgres/transactions.ts';
import { flag, isUuid, optional, perPage, uuid } from '../../../registry/fields.ts';
import { liftSuppression } from '../../../suppression/lift-suppressions.ts';
import { type BodyField, refuse } from '../../operation/body.ts';
import { described, notFound, onePage, refused } from '../../operation/described-answers.ts';
import { type Call, type Operation, ownOf, type Parts, principalOf } from '../../operation/operation.ts';
import { peopleFields, peopleSchema, readPeople } from '../../operation/people.ts';

const tag = 'Privacy';

const fields = {
  ...peopleFields,
  mode: {
    schema: { type: 'string', enum: erasureModes, default: 'anonymise' },
    read: (value: unknown) =>
      erasureModes.find((mode) => mode === value) ??
      refuse('invalid_value', `must be one of ${erasureModes.join(', ')}`),
  },
} satisfies Record<string, BodyField>;

const schema = { $ref: '#/components/schemas/Erasure' };

const request: Operation = {
  id: 'erase-people',
  method: 'POST',
  path: '/v1/erasures',
  tag,
  summary: 'Erase people',
  description:
    `Erases up to ${limits.erasureIdsMax.toLocaleString('en')} people: customers by \`customer_ids\`, and people known ` +
    'from interactions alone by `user_ids`. When the answer arrives, nobody can read their data, and records that refer ' +
    'to them are refused with the code `erased`. With `anonymise`, transactions and interactions are kept without the ' +
    'person; with `delete`, they are deleted too. Customers and favourites are always deleted. A customer and its ' +
    '`user_id` are one person, and so are customers with the same `user_id`. An interaction belongs to its `student_id`, ' +
    'or to its `user_id` if it has no `student_id`; interactions of other students only lose an erased `user_id`.',
  permission: 'data:erase',
  query: {
    dry_run: optional(
      flag({ description: 'count what would be erased; nothing is stored', examples: [true] }),
    ),
  },
  requestBody: {
    schema: peopleSchema(fields),
    bytesMax: limits.erasureBodyBytesMax,
    example: { customer_ids: ['e5b1c8d2-7f36-4a90-8c14-9d2e6f70b351'], mode: 'anonymise' },
  },
  answers: {
    200: {
      description:
        'The answer to a dry run: how many rows would be changed or deleted. Rejections, receipts and Idempotency-Keys ' +
        'are not counted.',
      schema: { $ref: '#/components/schemas/CountedErasure' },
    },
    202: described(
      'The erasure, and which of the customers are not stored. Follow it with its `erasure_id`.',
      'RequestedErasure',
    ),
    409: refused('Too many ids are being erased. Wait for `Retry-After`. Code: `too_many_erasures`.'),
  },
  async handle(call, { pool, references }) {
    const { organisationId, keyId } = principalOf(call);
    const { mode = 'anonymise', ...people } = readPeople(fields, call.body);
    const asked = { organisationId, keyId, mode, ...people };
    const own = pool.for(organisationId);
    const hasher = await references.suppressions.hasherFor(own, organisationId);
    if (call.query.dry_run === true) return { status: 200, body: await countErasure(own, asked) };
    const { erasure, unknown } = await requestErasure(own, asked, hasher);
    return { status: 202, body: { ...erasure, unknown_customer_ids: unknown } };
  },
};

const pathParameters = { erasure_id: uuid({ description: 'the id of the erasure' }) };

const notSwept = refused('The erasure is not swept yet. Code: `erasure_not_swept`.');
const notFinished = refused(
  'The erasure is not swept yet, or `lake` is still `pending`. Code: `erasure_not_swept`.',
);

async function foundErasure(call: Call, parts: Parts): Promise<Erasure> {
  const id = call.params.erasure_id;
  const found = isUuid(id) ? await findErasure(...ownOf(call, parts), id) : undefined;
  if (!found) throw new RequestError('erasure_not_found');
  return found;
}

const get: Operation = {
  id: 'get-erasure',
  method: 'GET',
  path: '/v1/erasures/{erasure_id}',
  tag,
  summary: 'Get an erasure',
  description:
    'Returns the progress of an erasure. `pending`: the people are hidden; `running`: tables are being swept; `swept`: ' +
    'the ids are only in the last entries of the change feed; `done`: these entries were dropped too. `lake` is ' +
    '`pending` until the files of the lake have been rewritten, and then `done`.',
  permission: 'data:erase',
  pathParameters,
  answers: { 200: { description: 'The erasure.', schema }, 404: notFound },
  async handle(call, parts) {
    return { status: 200, body: await foundErasure(call, parts) };
  },
};

const list: Operation = {
  id: 'list-erasures',
  method: 'GET',
  path: '/v1/erasures',
  tag,
  summary: 'List erasures',
  description:
    'Returns a page of erasures, the newest first: send `next_cursor` as `cursor` until it is null.',
  permission: 'data:erase',
  query: {
    cursor: optional(uuid({ description: 'the `next_cursor` of the previous page' })),
    limit: optional(perPage('erasures', limits.erasuresPerPageMax, limits.erasuresPerPageDefault)),
  },
  answers: { 200: onePage('ErasurePage') },
  async handle(call, parts) {
    const asked = { limit: limits.erasuresPerPageDefault, ...call.query } as AskedPage;
    return { status: 200, body: await erasurePage(...ownOf(call, parts), asked) };
  },
};

const lift: Operation = {
  id: 'lift-suppression',
  method: 'DELETE',
  path: '/v1/erasures/{erasure_id}/suppression',
  tag,
  summary: 'Lift the suppression of erased people',
  description:
    'Accepts records of the people of an erasure again, unless another erasure covers them. Erased data stays erased. ' +
    'The erasure must be swept, and `lake` must not be `pending`.',
  permission: 'data:erase',
  pathParameters,
  answers: {
    200: {
      description: 'How many ids were suppressed.',
      schema: {
        type: 'object',
        properties: { lifted: { type: 'integer' } },
        required: ['lifted'],
        additionalProperties: false,
      },
    },
    404: notFound,
    409: notFinished,
  },
  async handle(call, parts) {
    const id = call.params.erasure_id;
    if (!isUuid(id)) throw new RequestError('erasure_not_found');
    return { status: 200, body: { lifted: await liftSuppression(...ownOf(call, parts), id) } };
  },
};

const certificate: Operation = {
  id: 'get-erasure-certificate',
  method: 'GET',
  path: '/v1/erasures/{erasure_id}/certificate',
  tag,
  summary: 'Get the certificate of an erasure',
  description:
    'Returns what was removed, where and when, and what remains and until when, signed with Ed25519 as a JWS. With ' +
    '`Accept: text/html`, it is a readable page. The erasure must be swept.',
  permission: 'data:erase',
  pathParameters,
  answers: {
    200: {
      ...described('The certificate.', 'ErasureCertificate'),
      otherContent: { 'text/html': { schema: { type: 'string' } } },
    },
    404: notFound,
    409: notSwept,
    503: refused(
      'This process lacks a key that ids of erased people were hashed with. Code: `erasure_key_missing`.',
    ),
  },
  async handle(call, parts) {
    const [pool, organisationId] = ownOf(call, parts);
    const { config, references } = parts;
    const found = await foundErasure(call, parts);
    if (found.swept === null) throw new RequestError('erasure_not_swept');
    await references.suppressions.requireKeys(pool, organisationId);
    const [key] = config.erasureKeys;
    if (key === undefined) throw new RequestError('erasure_not_configured');
    const made = certificateOf(organisationId, found, config.changesKeptDays, await databaseTime(pool));
    const jws = new CertificateSigner(key).sign(made);
    if (!String(call.headers.accept ?? '').includes('text/html'))
      return { status: 200, body: { certificate: made, jws } };
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': certificatePagePolicy,
    };
    return { status: 200, headers, body: Readable.from([Buffer.from(certificatePage(made, jws))]) };
  },
};

const keys: Operation = {
  id: 'list-erasure-keys',
  method: 'GET',
  path: '/v1/erasure-keys',
  tag,
  summary: 'List the keys that certificates are signed with',
  description: 'Returns the public keys, the newest first, as PEM. No key is needed to read them.',
  permission: null,
  answers: {
    200: {
      description: 'The public keys.',
      schema: {
        type: 'object',
        properties: {
          keys: {
            type: 'array',
            items: {
              type: 'object',
              properties: { key_id: { type: 'string' }, public_key: { type: 'string' } },
              required: ['key_id', 'public_key'],
              additionalProperties: false,
            },
          },
        },
        required: ['keys'],
        additionalProperties: false,
      },
    },
  },
  async handle(_, { config }) {
    const signers = config.erasureKeys.map((key) => new CertificateSigner(key));
    const listed = signers.map(({ keyId, publicPem }) => ({ key_id: keyId, public_key: publicPem }));
    return { status: 200, body: { keys: listed } };
  },
};

export const erasureOperations: readonly Operation[] = [request, list, get, certificate, lift, keys];
