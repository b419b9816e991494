import { type Detail, invalidRequest, RequestError } from '../../errors.ts';
import { keyCursor, listApiKeys } from '../../keys/api-keys.ts';
import { isKeyId, keyIdPattern } from '../../keys/key-format.ts';
import { allPermissions, permissions as knownPermissions } from '../../keys/permissions.ts';
import { limits } from '../../limits.ts';
import { issueKey, revokeKey, rotateKey } from '../../operator/audited-actions.ts';
import {
  browserPermissions,
  keyLabel,
  originProblem,
  permissionProblem,
  permissionsOf,
} from '../../operator/rules.ts';
import { dateTime, flag, optional } from '../../registry/fields.ts';
import type { Instant } from '../../registry/times.ts';
import { type BodyField, bodySchema, readFields, refuse } from '../operation/body.ts';
import { described, notFound, onePage, whileDeleted } from '../operation/described-answers.ts';
import type { Call, Operation } from '../operation/operation.ts';
import {
  bodyText,
  dateOf,
  expiryField,
  operatorOf,
  organisationNamed,
  pageQuery,
  patternField,
  readPage,
  slugField,
  toggle,
  wholeNumber,
} from './fields.ts';
import type { AdminParts } from './parts.ts';

const tag = 'Keys';
const issuedAnswer = described('The key, which is shown only once, and its details.', 'IssuedKey');

const permissions: BodyField<string[]> = {
  schema: {
    type: 'array',
    items: { type: 'string', enum: knownPermissions },
    minItems: 1,
    description: `default: ${allPermissions.join(', ')}; of a browser key: ${browserPermissions.join(', ')}`,
  },
  read(value) {
    if (!Array.isArray(value) || value.length === 0 || !value.every((one) => typeof one === 'string'))
      return refuse('wrong_type', 'must be an array of permissions');
    const problem = value.map(permissionProblem).find((found) => found !== undefined);
    return problem === undefined ? permissionsOf(value) : refuse('invalid_value', problem);
  },
};

const origins: BodyField<string[]> = {
  schema: {
    type: 'array',
    items: { type: 'string', maxLength: limits.originCharactersMax, examples: ['https://shop.example'] },
    minItems: 1,
    maxItems: limits.browserOriginsMax,
    description: 'with `browser`: the origins of the pages that may use the key',
  },
  read(value) {
    const isList = Array.isArray(value) && value.length >= 1 && value.length <= limits.browserOriginsMax;
    if (!isList || !value.every((one) => typeof one === 'string'))
      return refuse('wrong_type', `must be an array of 1 to ${limits.browserOriginsMax} origins`);
    const problem = value.map(originProblem).find((found) => found !== undefined);
    return problem === undefined ? [...new Set<string>(value)] : refuse('invalid_value', problem);
  },
};

const keyId = patternField(keyIdPattern.source, 'the id of the key, which is also its second part');

const issueFields = {
  organisation: { ...bodyText(slugField), required: true as const },
  permissions,
  browser: toggle('whether it is a browser key, which only records interactions, and only from `origins`'),
  origins,
  label: bodyText(keyLabel),
  expires_at: expiryField('when the key expires; default never'),
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
    example: { organisation: 'acme', permissions: ['data:write', 'data:read'], label: 'nightly export' },
  },
  answers: { 201: issuedAnswer, 409: whileDeleted },
  async handle(call, { pool }) {
    const wanted = readFields(issueFields, call.body);
    const { organisation_id: organisationId } = await organisationNamed(pool, wanted.organisation);
    const issued = await issueKey(pool, operatorOf(call), {
      organisationId,
      ...grantedBy(wanted),
      label: wanted.label ?? null,
      expiresAt: wanted.expires_at ?? null,
    });
    return { status: 201, body: issued };
  },
};

function grantedBy(wanted: {
  permissions: string[] | undefined;
  browser: boolean | undefined;
  origins: string[] | undefined;
}) {
  if (wanted.browser !== true) {
    if (wanted.origins)
      throw invalidRequest(notCombinable('origins', 'is for browser keys; add "browser": true'));
    return { permissions: wanted.permissions ?? allPermissions, browserOrigins: null };
  }
  if (wanted.permissions)
    throw invalidRequest(
      notCombinable('permissions', 'must be omitted, because a browser key only records interactions'),
    );
  if (!wanted.origins)
    throw invalidRequest({ field: 'origins', code: 'required', message: 'is required for a browser key' });
  return { permissions: browserPermissions, browserOrigins: wanted.origins };
}

function notCombinable(field: string, message: string): Detail {
  return { field, code: 'not_combinable', message };
}

interface KeyQuery {
  readonly organisation?: string;
  readonly expires_before?: Instant;
  readonly unused?: boolean;
}

const list: Operation<AdminParts> = {
  id: 'list-keys',
  method: 'GET',
  path: '/admin/v1/keys',
  tag,
  summary: 'List keys',
  description:
    'Returns a page of keys, for one organisation or for all. Send `next_cursor` as `cursor` until it is null. ' +
    '`expires_before` and `unused` exclude keys that are revoked or have expired.',
  permission: null,
  query: {
    organisation: optional(slugField),
    expires_before: optional(dateTime({ description: 'only keys that expire before then' })),
    unused: optional(flag({ description: '`true`: only keys that were never used' })),
    ...pageQuery,
  },
  answers: { 200: onePage('KeyPage') },
  async handle(call, { pool }) {
    const { organisation: slug, expires_before, unused } = call.query as KeyQuery;
    const organisation = slug === undefined ? null : await organisationNamed(pool, slug);
    const filter = {
      organisationId: organisation?.organisation_id ?? null,
      expiresBefore: dateOf(expires_before),
      unused,
    };
    const read = (after: string | null, count: number) => listApiKeys(pool, filter, after, count);
    const { rows, next } = await readPage(call.query, read, keyCursor);
    return { status: 200, body: { keys: rows, next_cursor: next } };
  },
};

/** A malformed key id gets the same response as an unknown key. */
function keyIdOf({ params }: Call): string {
  const { key_id = '' } = params;
  if (!isKeyId(key_id)) throw new RequestError('key_not_found');
  return key_id;
}

const rotateFields = {
  grace_seconds: wholeNumber({ minimum: 0, maximum: limits.graceSecondsMax }),
  expires_at: expiryField('when the successor expires; default never'),
};

const rotate: Operation<AdminParts> = {
  id: 'rotate-key',
  method: 'POST',
  path: '/admin/v1/keys/{key_id}/rotate',
  tag,
  summary: 'Rotate a key',
  description:
    'Issues a successor with the same permissions, origins and label. The old key works for `grace_seconds` more, default one day. ' +
    'The successor never expires unless `expires_at` is given: the expiry of the old key is not copied.',
  permission: null,
  pathParameters: { key_id: keyId },
  requestBody: {
    schema: bodySchema(rotateFields),
    example: { grace_seconds: limits.graceSecondsDefault },
    required: false,
  },
  answers: { 201: issuedAnswer, 404: notFound, 409: whileDeleted },
  async handle(call, { pool }) {
    const wanted = readFields(rotateFields, call.body);
    const successor = await rotateKey(pool, operatorOf(call), keyIdOf(call), {
      graceMs: (wanted.grace_seconds ?? limits.graceSecondsDefault) * 1_000,
      expiresAt: wanted.expires_at ?? null,
    });
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
  description:
    'Revokes a key. Within 5 seconds, requests with the key get 401 from every process. Revoking twice changes nothing.',
  permission: null,
  pathParameters: { key_id: keyId },
  answers: { 200: described('The current key.', 'Key'), 404: notFound },
  async handle(call, { pool }) {
    readFields({}, call.body);
    const revoked = await revokeKey(pool, operatorOf(call), keyIdOf(call));
    if (!revoked) throw new RequestError('key_not_found');
    return { status: 200, body: revoked };
  },
};

export const keyOperations: readonly Operation<AdminParts>[] = [issue, list, rotate, revoke];
