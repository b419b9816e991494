import { RequestError } from '../../errors.ts';
import { isKeyId } from '../../keys/key-format.ts';
import { allPermissions } from '../../keys/permissions.ts';
import { limits } from '../../limits.ts';
import { type IssuedKey, issueKey, revokeKey, rotateKey } from '../../operator/acts.ts';
import { keyLabel, permissionProblem, permissionsOf, slugProblem } from '../../operator/rules.ts';
import { optional, text } from '../../registry/fields.ts';
import { readDateTime, unixMsOf } from '../../registry/times.ts';
import { listApiKeys } from '../../store/api-keys.ts';
import { findOrganisation, type Organisation } from '../../store/organisations.ts';
import type { Pool } from '../../store/pool.ts';
import type { Call, Operation } from '../operation.ts';
import { type BodyField, bodySchema, invalid, readFields, refuse } from './body.ts';
import { bodyText, operatorOf, pageOf, pageQuery, refused, wholeNumber } from './fields.ts';
import type { AdminParts } from './parts.ts';

const tag = 'Keys';
const example: IssuedKey = {
  key_id: '7dQk2LrX9Ab',
  organisation: 'acme',
  permissions: ['data:write', 'data:read'],
  label: 'nightly export',
  created_at: '2026-03-14T09:26:53.035Z',
  created_by: 'admin-api',
  last_used_at: null,
  expires_at: null,
  revoked_at: null,
  successor_of: null,
  key: 'intake_7dQk2LrX9Ab_…',
};
const { key: _, ...listedExample } = example;
const issuedAnswer = {
  description: 'The key, shown this once, and what is known of it.',
  schema: { $ref: '#/components/schemas/IssuedKey' },
  example,
};

const permissions: BodyField<string[]> = {
  schema: { type: 'array', items: { type: 'string' }, minItems: 1, description: 'everything, unless given' },
  read(value) {
    if (!Array.isArray(value) || value.length === 0 || !value.every((one) => typeof one === 'string'))
      return refuse('wrong_type', 'must be an array of permissions');
    const problem = value.map(permissionProblem).find((found) => found !== undefined);
    return problem === undefined ? permissionsOf(value) : refuse('invalid_value', problem);
  },
};

const expiresAt: BodyField<Date> = {
  schema: { type: 'string', format: 'date-time', description: 'when it ends; never, unless given' },
  read(value) {
    const instant = typeof value === 'string' ? readDateTime(value) : undefined;
    if (instant === undefined) return refuse('invalid_format', 'must be an ISO 8601 date-time');
    const ms = unixMsOf(instant);
    return ms > Date.now() ? new Date(ms) : refuse('out_of_range', 'must lie in the future');
  },
};

const issueFields = {
  organisation: { ...bodyText(text({ description: 'its slug' })), required: true as const },
  permissions,
  label: bodyText(keyLabel),
  expires_at: expiresAt,
};

const issue: Operation<AdminParts> = {
  id: 'issue-key',
  method: 'POST',
  path: '/admin/v1/keys',
  tag,
  summary: 'Issue a key',
  description: 'The key itself is in this answer and nowhere else: only a hash of it is stored.',
  permission: null,
  requestBody: {
    schema: bodySchema(issueFields),
    example: { organisation: 'acme', permissions: example.permissions, label: example.label },
  },
  answers: { 201: issuedAnswer, 400: refused('A field is missing, unknown or wrong; `details` names it.') },
  async handle(call, { pool }) {
    const wanted = readFields(issueFields, call.body);
    const { organisation_id: organisationId } = await organisationNamed(pool, wanted.organisation);
    const issued = await issueKey(pool, operatorOf(call), {
      organisationId,
      permissions: wanted.permissions ?? allPermissions,
      label: wanted.label ?? null,
      expiresAt: wanted.expires_at ?? null,
    });
    return { status: 201, body: issued };
  },
};

async function organisationNamed(pool: Pool, slug: string): Promise<Organisation> {
  const found = slugProblem(slug) === undefined ? await findOrganisation(pool, slug) : undefined;
  if (found) return found;
  throw invalid({
    field: 'organisation',
    code: 'reference_not_found',
    message: 'must be the slug of an organisation that exists',
  });
}

const list: Operation<AdminParts> = {
  id: 'list-keys',
  method: 'GET',
  path: '/admin/v1/keys',
  tag,
  summary: 'List keys',
  description:
    'Of one organisation or of all, a page at a time: pass `next_cursor` on as `cursor` until it is null.',
  permission: null,
  query: { organisation: optional(text({ description: 'its slug' })), ...pageQuery },
  answers: {
    200: {
      description: 'One page.',
      schema: { $ref: '#/components/schemas/KeyPage' },
      example: { keys: [listedExample], next_cursor: null },
    },
    400: refused('A parameter is unknown or wrong, or there is no such organisation.'),
  },
  async handle(call, { pool }) {
    const slug = call.query.organisation as string | undefined;
    const organisation = slug === undefined ? null : await organisationNamed(pool, slug);
    const read = (after: string | null, count: number) =>
      listApiKeys(pool, organisation?.organisation_id ?? null, after, count);
    const { rows, next_cursor } = await pageOf(call.query, read, (row) => row.key_id);
    return { status: 200, body: { keys: rows, next_cursor } };
  },
};

/** What cannot be the id of a key is that of none. */
function keyIdOf({ params }: Call): string {
  const { key_id = '' } = params;
  if (!isKeyId(key_id)) throw new RequestError('key_not_found');
  return key_id;
}

const rotateFields = { grace_seconds: wholeNumber({ minimum: 0, maximum: limits.graceSecondsMax }) };

const rotate: Operation<AdminParts> = {
  id: 'rotate-key',
  method: 'POST',
  path: '/admin/v1/keys/{key_id}/rotate',
  tag,
  summary: 'Rotate a key',
  description:
    'Issues a successor with the same permissions and label. The old key goes on working for `grace_seconds`, a day unless said.',
  permission: null,
  pathParameters: { key_id: text() },
  requestBody: { schema: bodySchema(rotateFields), example: { grace_seconds: limits.graceSecondsDefault } },
  answers: {
    201: issuedAnswer,
    400: refused('A field is unknown or wrong; `details` names it.'),
    404: refused('There is no such key in use.'),
  },
  async handle(call, { pool }) {
    const { grace_seconds = limits.graceSecondsDefault } = readFields(rotateFields, call.body);
    const successor = await rotateKey(pool, operatorOf(call), keyIdOf(call), grace_seconds * 1_000);
    if (!successor) throw new RequestError('key_not_found');
    return { status: 201, body: successor };
  },
};

const revoke: Operation<AdminParts> = {
  id: 'revoke-key',
  method: 'POST',
  path: '/admin/v1/keys/{key_id}/revoke',
  tag,
  summary: 'Revoke a key',
  description: 'Ends a key at once: every process refuses it within 5 seconds. Again, it changes nothing.',
  permission: null,
  pathParameters: { key_id: text() },
  answers: {
    200: {
      description: 'The key as it is now.',
      schema: { $ref: '#/components/schemas/Key' },
      example: { ...listedExample, revoked_at: '2026-03-14T10:00:00.000Z' },
    },
    404: refused('There is no such key.'),
  },
  async handle(call, { pool }) {
    readFields({}, call.body);
    const revoked = await revokeKey(pool, operatorOf(call), keyIdOf(call));
    if (!revoked) throw new RequestError('key_not_found');
    return { status: 200, body: revoked };
  },
};

export const keyOperations: readonly Operation<AdminParts>[] = [issue, list, rotate, revoke];
